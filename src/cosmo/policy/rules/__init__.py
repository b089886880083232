"""Every EN and SN rule, written once: scalar functions of what is seen and of named arrays.

A node runs them as plain Python, row by row (`run`); a laboratory compiles the same functions
(`cosmo.control.compiled`). So that this is possible, they allocate nothing, raise nothing, index
arrays by all of their axes at once, and call nothing but each other and functions of `math`.
"""

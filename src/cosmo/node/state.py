"""The fields of a node's own state: N, W, B, M of R12, then what load balancers ask for."""

IDLE = 0  # N: idle slots
WAIT = 1  # W: ms that the head of the queue has waited
WORK = 2  # B: cycles of the waiting tasks plus what is left of the running ones
STORAGE = 3  # M: free bytes
REQUESTS = 4  # tasks in the node
LATENCY = 5  # ms from arrival to finish, smoothed
STATE_FIELDS = 6

RAW_FIELDS = 4  # N, W, B, M: what R18 has scales for, and what a raw status carries

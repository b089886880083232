"""An endpoint picker for other people's proxies: methods choose where Envoy sends a request.

`http2` and `grpc_server` are the transport, `ext_proc` the messages of Envoy's external processing,
`core_picker` and `serve_picker` the node, `endpoints` where it learns which services there are.
"""

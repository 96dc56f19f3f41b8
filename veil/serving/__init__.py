"""The MCP server: the tools of ``veil.tools`` for any client that speaks the Model Context Protocol.

``stdio`` and ``loopback`` are the two ways to reach it; ``answering`` is the server itself; ``lifetime`` ends it, and
everything that it started with it. The official SDK (``pytest-veil[mcp]``) is imported when one of them begins.
"""

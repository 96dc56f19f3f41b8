"""What strace writes, read: lines to calls, calls to events, events to a bounded account."""

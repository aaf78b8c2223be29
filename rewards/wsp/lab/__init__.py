"""The lab: episodes of many agents on shared models, in this process or over HTTP on loopback."""

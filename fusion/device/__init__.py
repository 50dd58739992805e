"""Device descriptions: numbers with units and sources in TOML files, checked when they are loaded."""

from fusion.device.load import available, describe, load, loads, save
from fusion.device.model import Device, Number

__all__ = ["Device", "Number", "available", "describe", "load", "loads", "save"]

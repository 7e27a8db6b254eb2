"""Estimates, decisions, power: how sure figures are. The only new room that asks scipy. Pure, without English."""

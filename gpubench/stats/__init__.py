"""Estimates, decisions, power: how sure figures are. The only room that asks scipy. Pure, without English."""

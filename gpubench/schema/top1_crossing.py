"""The words of the column `top1_crossing`."""

CONFIRMED = "confirmed"
UNCONFIRMED = "unconfirmed"

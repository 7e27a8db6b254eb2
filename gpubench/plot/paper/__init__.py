"""Descriptions, drawn by matplotlib at the width of a paper's column: the only room that imports it."""

"""Measurements of agentx and with agentx; none is part of the package."""

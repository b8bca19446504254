"""Constants of reproducers that a plan alone cannot tell: a module of a family's name with `constants(scenario)`."""

"""ray.util.collective.collective_group: the classes of groups. Ray's base is Ray's; those of its backends are col's."""

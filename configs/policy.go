package configs

import (
	"cmp"
	"slices"

	"carma/mapper"
)

// mapperDefaults are a policy's default options, with no value left to another
// default. Users take turns: a policy's own order, as replays have it, is that of
// one user's tasks.
func mapperDefaults(policy string) mapper.Options {
	o := mapper.DefaultsOf(policy)
	o.Booking = cmp.Or(o.Booking, mapper.Bookings[0])
	o.Order = map[string]string{mapper.OrderSJF: mapper.OrderFairSJF}[o.Order] // a server has several users
	o.Order = cmp.Or(o.Order, mapper.OrderFair)
	o.Recovery = cmp.Or(o.Recovery, mapper.Recoveries[0])
	return o
}

// Defaults returns the configuration if nothing but the policy is set.
func Defaults(policy string) Config {
	c := Default()
	c.Mapper = mapperDefaults(policy)
	return c
}

// byPolicy reports whether the default of a key depends on the policy.
func (k key) byPolicy() bool {
	if k.name == "policy" {
		return false
	}
	defaults := Default()
	usual := show(k.at(&defaults))
	return slices.ContainsFunc(mapper.PolicyNames(), func(policy string) bool {
		defaults.Mapper = mapperDefaults(policy)
		return show(k.at(&defaults)) != usual
	})
}

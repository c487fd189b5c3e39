package configs

import (
	"cmp"
	"sync"

	"carma/mapper"
	"carma/mapper/model"
)

// launchesAtOnce keeps an engine busy that makes some containers at a time, as a cluster
// of which 16 are asked for at a time.
const launchesAtOnce = 64

// mapperDefaults returns a policy's default options, with no value left to another
// default. The order is by fair share: a policy's own order, used in replays, is for the
// tasks of one user.
func mapperDefaults(policy string) model.Options {
	o := mapper.DefaultsOf(policy)
	o.Booking = cmp.Or(o.Booking, model.Bookings[0])
	o.Order = map[string]string{model.OrderSJF: model.OrderFairSJF}[o.Order] // a server has several users
	o.Order = cmp.Or(o.Order, model.OrderFair)
	o.Recovery = cmp.Or(o.Recovery, model.Recoveries[0])
	o.LaunchesAtOnce = launchesAtOnce
	return o
}

// Defaults returns the configuration if nothing but the policy is set.
func Defaults(policy string) Config {
	c := Default()
	c.Mapper = mapperDefaults(policy)
	return c
}

// byPolicy reports whether the default of a key depends on the policy.
func (k key) byPolicy() bool { return ofPolicy()[k.name] }

// ofPolicy has the names of these keys. It is asked for each flag of each command, at
// every start, so the policies are compared once.
var ofPolicy = sync.OnceValue(func() map[string]bool {
	usual, names := Default(), map[string]bool{}
	for _, policy := range mapper.PolicyNames() {
		defaults := usual
		defaults.Mapper = mapperDefaults(policy)
		for _, k := range keys {
			if k.name != "policy" && show(k.at(&defaults)) != show(k.at(&usual)) {
				names[k.name] = true
			}
		}
	}
	return names
})

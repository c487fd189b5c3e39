package settings

import (
	"cmp"
	"sync"

	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/policy"
	"carma/mapper/rules"
)

// launchesAtOnce is the default number of concurrent launches. It keeps an engine busy
// that starts several containers at a time, such as a cluster with 16 requests in flight.
const launchesAtOnce = 64

// mapperDefaults returns all of a policy's default options. The order is by fair share: a
// policy's own order, used in replays, is for the tasks of one user.
func mapperDefaults(policy string) model.Options {
	o := mapper.DefaultsOf(policy)
	o.Booking = cmp.Or(o.Booking, model.Bookings[0])
	o.Order = map[string]string{model.OrderSJF: model.OrderFairSJF}[o.Order] // a server has several users
	o.Order = cmp.Or(o.Order, model.OrderFair)
	o.Recovery = cmp.Or(o.Recovery, model.Recoveries[0])
	o.LaunchesAtOnce = launchesAtOnce
	return o
}

// Defaults returns the default configuration with a policy.
func Defaults(policy string) Config {
	c := Default()
	c.Mapper = mapperDefaults(policy)
	return c
}

// byPolicy reports whether the default of a key depends on the policy.
func (k key) byPolicy() bool { return ofPolicy()[k.name] }

// ofPolicy contains the names of these keys. The policies are compared once, because
// ofPolicy is called for each flag of each command, at every start.
var ofPolicy = sync.OnceValue(func() map[string]bool {
	usual, names := Default(), map[string]bool{}
	for _, policy := range policy.Names() {
		defaults := usual
		defaults.Mapper = mapperDefaults(policy)
		for _, k := range keys {
			if k.name != "policy" && rules.Format(k.at(&defaults)) != rules.Format(k.at(&usual)) {
				names[k.name] = true
			}
		}
	}
	return names
})

package daemon

import (
	"fmt"
	"slices"

	"carma/cmd/carma/settings"
)

// claimStays is the reason why no task of a cluster is suspended. TestFrozen of
// containers/kubernetes/test proves it.
const claimStays = "on a cluster its claim keeps the GPU memory for as long as its pod is there, so nobody else could have it"

// notOnCluster lists settings that a user may request and that a cluster does not
// support.
var notOnCluster = []struct {
	keys    []string
	what    string // after "on a cluster"
	instead string
}{
	{
		[]string{"suspend", "make-way", "swap-shorter", "fill-held", "suspend-overuse", "suspend-idle", "suspend-slots", "suspend-moves", "suspend-slowing", "suspend-least"},
		"no task is suspended: a claim keeps its GPU memory for as long as its pod is there",
		"leave it out; carma requeue --hold TASK makes room by hand",
	},
	{
		[]string{"mps", "mps-threads", "mps-ipc"},
		"there is no MPS: NVIDIA's DRA driver refuses it together with shares of memory",
		"leave it out; tasks of a GPU take turns",
	},
	{
		[]string{"memory-limit", "memory-burst"},
		"nothing holds a program to its GPU memory, as the daemon is not on the task's machine",
		"leave it out; the watchdog books what a task uses, or stops it",
	},
	{
		[]string{"processors"},
		"the kubelet chooses a pod's processors",
		"leave it out; the static CPU manager of the kubelet knows what is near",
	},
}

// harmless lists values that request nothing, regardless of the default.
var harmless = []string{"off", "false"}

// checkCluster refuses a requested setting that a cluster does not support. A default value
// is no request, even if the configuration states it.
func checkCluster(config settings.Config, from settings.Origins) error {
	if !inCluster(config) {
		return nil
	}
	all, defaults := settings.Settings(config, from), settings.Settings(settings.Defaults(config.Mapper.Policy), nil)
	for _, no := range notOnCluster {
		for i := range all {
			s := &all[i]
			if slices.Contains(no.keys, s.Key) && s.Set() && s.Value != defaults[i].Value && !slices.Contains(harmless, s.Value) {
				return &settings.Error{Origin: s.Origin, Key: s.Key, What: fmt.Sprintf("%s: on a cluster %s; %s", s.Value, no.what, no.instead)}
			}
		}
	}
	return nil
}

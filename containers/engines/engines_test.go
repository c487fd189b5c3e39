package engines_test

import (
	"slices"
	"testing"

	"carma/cmd/carma/settings"
	"carma/containers"
	"carma/containers/engines"
)

// TestEngines: the configuration accepts the names of all engines, and of the one that
// carma-kubernetes adds. Each driver has that name, an address and a fix.
func TestEngines(t *testing.T) {
	if names := append(engines.Names(), "kubernetes"); !slices.Equal(settings.Drivers, names) {
		t.Errorf("settings.Drivers has %s; the engines are %s", settings.Drivers, names)
	}
	for _, e := range engines.All {
		d, err := e.Open(engines.Settings{DataDir: t.TempDir()})
		if err != nil {
			t.Logf("%s: %v", e.Name, err) // this user may not open it
			continue
		}
		if d.Name() != e.Name {
			t.Errorf("the driver of %s has the name %s", e.Name, d.Name())
		}
		a, ok := d.(containers.Advised)
		if !ok || a.Address() == "" || a.Advice() == (containers.Advice{}) {
			t.Errorf("%s does not say where it is expected, and what mends it", e.Name)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

package monitor

import (
	"reflect"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// TestDigestHasEveryField checks that the monitor fills each field of the sample for the
// mapper.
func TestDigestHasEveryField(t *testing.T) {
	var in gpu.Sample
	fill(reflect.ValueOf(&in).Elem())
	in.Used = 8 * units.GiB // more than its processes use: the rest is foreign memory
	in.TemperatureC, in.PowerW, in.EnergyJ, in.CounterJ = 50, 300, 1e6, 1e6
	out := reflect.ValueOf(newTestMonitor(newCards(1)).digest(1, in))
	for i := range out.NumField() {
		if out.Field(i).IsZero() {
			t.Errorf("digest leaves %s.%s zero", reflect.TypeFor[model.GPUSample]().Name(), out.Type().Field(i).Name)
		}
	}
}

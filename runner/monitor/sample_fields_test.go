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

// TestDigestIgnoresNoise checks that differences of a few ten thousandths in the readings of a
// GPU leave its sample as it is. Each new sample is an event in the journal, and the readings of
// a busy GPU are never twice the same.
func TestDigestIgnoresNoise(t *testing.T) {
	reading := func(factor float64) model.GPUSample {
		var in gpu.Sample
		fill(reflect.ValueOf(&in).Elem())
		scaleFloats(reflect.ValueOf(&in).Elem(), factor)
		return newTestMonitor(newCards(1)).digest(1, in)
	}
	want := reflect.ValueOf(reading(1))
	for i := range want.NumField() {
		if got := reflect.ValueOf(reading(1.0003)).Field(i).Interface(); !reflect.DeepEqual(got, want.Field(i).Interface()) {
			t.Errorf("%s: %v becomes %v by noise; round it in digest", want.Type().Field(i).Name, want.Field(i), got)
		}
	}
}

// scaleFloats multiplies all floating-point numbers in a value by a factor.
func scaleFloats(v reflect.Value, factor float64) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(v.Float() * factor)
	case reflect.Struct:
		for i := range v.NumField() {
			scaleFloats(v.Field(i), factor)
		}
	case reflect.Slice:
		for i := range v.Len() {
			scaleFloats(v.Index(i), factor)
		}
	}
}

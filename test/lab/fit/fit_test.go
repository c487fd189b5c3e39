package main

import (
	"go/format"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"carma/mapper/sim"
	"carma/mapper/sim/pairs"
)

// pairsOf makes pairs with the speeds of a model.
func pairsOf(m sim.Model) []pairs.Pair {
	tasks := []pairs.Task{
		{ID: "a", Family: "x", Load: sim.Load{SMACT: 0.82, DRAMA: 0.41, Step: 0.27}},
		{ID: "b", Family: "x", Load: sim.Load{SMACT: 0.80, DRAMA: 0.44, Step: 0.08}},
		{ID: "c", Family: "y", Load: sim.Load{SMACT: 0.69, DRAMA: 0.47, Step: 0.10}},
		{ID: "d", Family: "y", Load: sim.Load{SMACT: 0.60, DRAMA: 0.33, Step: 0.16}},
		{ID: "e", Family: "z", Load: sim.Load{SMACT: 0.17, DRAMA: 0.05, Step: 0.015}},
		{ID: "f", Family: "z", Load: sim.Load{SMACT: 0.22, DRAMA: 0.02, Step: 0.034}},
	}
	var all []pairs.Pair
	for i, a := range tasks {
		for _, b := range tasks[i+1:] {
			s := m.Speeds([]sim.Load{a.Load, b.Load})
			all = append(all, pairs.Pair{A: a, B: b, SpeedA: s[0], SpeedB: s[1]})
		}
	}
	return all
}

// TestFitFindsTheModel: a fit to speeds without noise returns the coefficients that made
// them.
func TestFitFindsTheModel(t *testing.T) {
	want := sim.Model{Block: 9, Power: 8, Ceiling: 0.82, Turn: 1.5, DRAM: 0.9}
	all := pairsOf(want)
	got := fit(all)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"block", got.Block, want.Block}, {"power", got.Power, want.Power}, {"ceiling", got.Ceiling, want.Ceiling},
		{"turn", got.Turn, want.Turn}, {"dram", got.DRAM, want.DRAM},
	} {
		if math.Abs(c.got-c.want) > 0.01*c.want {
			t.Errorf("%s %.4f, want %.4f", c.name, c.got, c.want)
		}
	}
	if again := fit(all); again != got {
		t.Error("a second fit differs")
	}
	r := crossValidate(all, func(t pairs.Task) string { return t.Family })
	if len(r.Speed) != 2*(3+4*2*3) { // pairs within a family once, between families twice
		t.Errorf("%d predictions", len(r.Speed))
	}
	r = crossValidate(all, func(t pairs.Task) string { return t.ID })
	if e := r.Speed.Mean(); e > 0.02 {
		t.Errorf("cross-validated error %.3f without noise", e)
	}
}

func TestWrite(t *testing.T) {
	out := filepath.Join(t.TempDir(), "coefficients.go")
	if err := write(out, sim.Fitted, 1, "one: speed 1; sum 2\ntwo: speed 3"); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := format.Source(source); err != nil || string(again) != string(source) || !strings.Contains(string(source), "//   - one: speed 1;\n//     sum 2\n//   - two: speed 3\n") {
		t.Errorf("%s", source)
	}
}

// TestShippedCoefficients: the shipped coefficients and their errors are the result of a
// fit to the shipped pairs.
func TestShippedCoefficients(t *testing.T) {
	all, err := read("", "")
	if err != nil {
		t.Fatal(err)
	}
	m := fit(all)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"block", sim.Fitted.Block, m.Block}, {"power", sim.Fitted.Power, m.Power}, {"ceiling", sim.Fitted.Ceiling, m.Ceiling},
		{"turn", sim.Fitted.Turn, m.Turn}, {"dram", sim.Fitted.DRAM, m.DRAM},
		{"step base", sim.Fitted.StepBase, m.StepBase}, {"step slope", sim.Fitted.StepSlope, m.StepSlope},
	} {
		if math.Abs(c.got-c.want) > 1e-3*math.Abs(c.want) { // four digits
			t.Errorf("%s %v ships, the fit says %v", c.name, c.got, c.want)
		}
	}
	source, err := os.ReadFile("../../../mapper/interference/coefficients.go")
	if err != nil {
		t.Fatal(err)
	}
	comment := strings.ReplaceAll(string(source), "\n//     ", " ")
	for text := range strings.SplitSeq(report(all, m), "\n") {
		title, figures, _ := strings.Cut(text, ":")
		sameFigures(t, title, figures, comment)
	}
	shipped := pairs.Score(all, sim.Fitted)
	if len(all) != 151 || math.Abs(shipped.Speed.Median()-0.040) > 1e-3 || math.Abs(shipped.Sum.Median()-0.059) > 1e-3 {
		t.Errorf("%d pairs, %s", len(all), line("shipped", shipped))
	}
}

var figure = regexp.MustCompile(`[-+]?\d+(\.\d+)?`)

// sameFigures compares the figures of a title with the figures in the comment, to the
// last digit but one: other processors round otherwise.
func sameFigures(t *testing.T, title, want, comment string) {
	t.Helper()
	_, got, ok := strings.Cut(comment, "//   - "+title+": ")
	got, _, _ = strings.Cut(got, "\n")
	ours, theirs := figure.FindAllString(want, -1), figure.FindAllString(got, -1)
	if !ok || len(ours) == 0 || len(ours) != len(theirs) {
		t.Errorf("%s: documented %q, the fit says %q", title, got, want)
		return
	}
	for i := range ours {
		if a, b := number(t, ours[i]), number(t, theirs[i]); math.Abs(a-b) > 0.0015 {
			t.Errorf("%s: documented %s, the fit says %s", title, theirs[i], ours[i])
		}
	}
}

func number(t *testing.T, text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestAims: how well the model has to predict tasks that it was not fitted to.
func TestAims(t *testing.T) {
	all, err := read("", "")
	if err != nil {
		t.Fatal(err)
	}
	s := crossValidate(all, func(t pairs.Task) string { return t.ID })
	for _, c := range []struct {
		name       string
		got, limit float64
	}{
		{"median error of a speed", s.Speed.Median(), 0.07},
		{"median error of the sum", s.Sum.Median(), 0.08},
		{"bias of a light task beside a heavy one", math.Abs(s.Light.Bias()), 0.05},
		{"bias of the heavy one", math.Abs(s.Heavy.Bias()), 0.05},
	} {
		if c.got >= c.limit {
			t.Errorf("%s: %.3f, the aim is under %v", c.name, c.got, c.limit)
		}
	}
	if len(s.Light) != 62 || len(s.Speed) != 4*len(all) {
		t.Errorf("%d speeds, %d of light tasks beside heavy ones", len(s.Speed), len(s.Light))
	}
}

// TestRead: a file of pairs is used as a whole or not at all.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.csv")
	const header = "solo_profile_a,solo_profile_b,overlap_speed_a,overlap_speed_b\n"
	for content, want := range map[string]string{
		header + "vgg16_imagenet_bs128_1gpu,unet_voc_1gpu,0.5,0.6\n": "",
		header + "vgg16_imagenet_bs128_1gpu,unet,0.5,0.6\n":          "p.csv:2: unknown profile unet",
		header + "vgg16_imagenet_bs128_1gpu,unet_voc_1gpu,x,0.6\n":   `p.csv:2: overlap_speed_a: "x" is not a number`,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := read(path, "")
		if want == "" {
			if err != nil || len(all) != 1 || !strings.HasPrefix(shippedErrors(all), "shipped coefficients: ") {
				t.Errorf("%+v %v", all, err)
			}
		} else if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := read("", path+"x"); err == nil {
		t.Error("profiles that are not there were read")
	}
}

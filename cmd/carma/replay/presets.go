package replay

import (
	"cmp"
	"fmt"
	"io"

	"carma/cmd/carma/cli"
	"carma/mapper/model"
	"carma/mapper/sim/study"
)

// printPresets lists the presets with their settings.
func printPresets(w io.Writer) error {
	t := &cli.Table{Columns: []cli.Column{{Title: "PRESET"}, {Title: "POLICY"}, {Title: "ESTIMATOR"}, {Title: "GATE"}, {Title: "WHAT IT IS", Least: 20, Share: 1}}}
	for _, p := range study.Presets() {
		row := p.Row()
		t.Add(p.Name, row.Options.Policy, row.Estimator, gateText(row.Options), p.Doc)
	}
	if err := t.Write(w, 0); err != nil {
		return err
	}
	for _, f := range study.Families() {
		o := f.Options("magm") // the same for every policy
		fmt.Fprintf(w, "\n%s: %s\n  score %s, booking %s, headroom %s, margin %s, warm-up %s, interval %s, recovery %s, strictly in order, idle GPUs first\n",
			f.Name, f.Doc, f.Score, o.Booking, o.Headroom, o.Margin, o.WarmUp, o.Interval, cmp.Or(o.Recovery, model.RecoverLadder))
	}
	_, err := fmt.Fprintln(w, "\nPresets without a prefix are of family v2. A workload without a published estimate counts as 40000 MiB, as in the original.")
	return err
}

// gateText returns the activity limits in short: SMACT, SMOCC, DRAMA.
func gateText(o model.Options) string {
	switch {
	case o.SMACTCap == 0:
		return "-"
	case o.SMOCCCap == 0 && o.DRAMACap == 0:
		return fmt.Sprintf("%.2f", o.SMACTCap)
	}
	return fmt.Sprintf("%.2f/%.2f/%.2f", o.SMACTCap, o.SMOCCCap, o.DRAMACap)
}

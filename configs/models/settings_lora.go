package models

import (
	"errors"
	"fmt"
	"strings"

	"carma/internal/suggest"
	"carma/internal/units"
)

// loraKeys lists the allowed keys of an adapter's text. Alpha and dropout do not change
// the estimated memory. They are accepted because people copy them from their program.
var loraKeys = []string{"r", "rank", "targets", "alpha", "dropout"}

// setLoRA reads a rank, or r=16,targets=q_proj,v_proj. A word without = belongs to the
// list before it.
func setLoRA(o *Overrides, text string) error {
	if !strings.Contains(text, "=") {
		return setRank(o, text)
	}
	rank, targets, last := "", []string(nil), ""
	for _, part := range strings.Split(text, ",") {
		key, value, is := strings.Cut(part, "=")
		if !is {
			key, value = last, part
		}
		switch last = strings.ToLower(key); {
		case last == "r" || last == "rank":
			rank = value
		case last == "targets":
			targets = append(targets, value)
		case last == "alpha" || last == "dropout":
		case last == "":
			return fmt.Errorf("%s: what is %s? write for example r=16,targets=all-linear", Short(text), Short(part))
		default:
			return fmt.Errorf("%s: unknown key %s; nearest: %s", Short(text), Short(key), suggest.Names(last, loraKeys, 1)[0])
		}
	}
	if rank == "" {
		return errors.New(Short(text) + " names no rank; write for example r=16,targets=all-linear")
	}
	if err := setRank(o, rank); err != nil {
		return err
	}
	if targets == nil {
		return nil
	}
	return setTargets(o, strings.Join(targets, ","))
}

func setRank(o *Overrides, text string) error {
	n, err := units.ParseCount(text, 1)
	if err == nil {
		o.LoRA = int(n)
	}
	return err
}

// setTargets reads names between commas.
func setTargets(o *Overrides, text string) error {
	var list []string
	for _, name := range strings.Split(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			return errors.New(Short(text) + " has an empty name; write for example q_proj,v_proj")
		}
		list = append(list, name)
	}
	o.Targets = list
	return nil
}

func toldLoRA(o *Overrides) string {
	if o.LoRA == 0 {
		return ""
	}
	text := fmt.Sprintf("LoRA %d", o.LoRA)
	if len(o.Targets) > 0 {
		text += " on " + Clip(strings.Join(o.Targets, ", "))
	}
	return text
}

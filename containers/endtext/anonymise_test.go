package endtext

import "testing"

// TestAnonymise: text that identifies the user of a program is replaced, and text about the
// cause of its end is kept.
func TestAnonymise(t *testing.T) {
	for in, want := range map[string]string{
		`  File "/home/ada/exp7/train.py", line 31, in main`:                         `  File "/path/train.py", line 31, in main`,
		`torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.`:    `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.`,
		`ada@lab.example.org token=hf_abcdefghijkl at 10.1.2.3:29500`:                `EMAIL token=SECRET at ADDRESS`,
		`wandb: view run at https://wandb.example/ada/p`:                             `wandb: view run at URL`,
		`[node-ada] NCCL WARN Cuda failure 2 'out of memory' at 0x7f3ecb5c7427`:      `[node-NAME] NCCL WARN Cuda failure 2 'out of memory' at 0xADDRESS`,
		`GPU-8f2d6c1e-1111-2222-3333-444455556666: 39.5 GiB; run 9f86d081884c7d659a`: `GPU-UUID: 39.5 GiB; run HEX`,
	} {
		if got := Anonymise(in, "ada"); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// TestRulesHaveSamples: each rule gives the stated claim for its sample, also for the
// anonymised sample, and none for the line that it must not match.
func TestRulesHaveSamples(t *testing.T) {
	for _, rule := range Rules() {
		if rule.match == nil {
			continue
		}
		if rule.Yes == "" || rule.No == "" || rule.Framework == "" {
			t.Errorf("rule %s lacks a sample or a framework", rule.Name)
		}
		if got := claimOf(rule.Yes, rule.raised); got == nil || got.Says != rule.Says || got.Strength != rule.Strength {
			t.Errorf("rule %s does not match its sample: %+v", rule.Name, got)
		}
		if got := claimOf(rule.No, rule.raised); got != nil && got.Strength > Weak && got.Rule == rule.Name {
			t.Errorf("rule %s matches what it must not: %+v", rule.Name, got)
		}
		if got := claimOf(Anonymise(rule.Yes), rule.raised); got == nil || got.Rule != rule.Name && got.Says != rule.Says {
			t.Errorf("rule %s does not match its anonymised sample %q", rule.Name, Anonymise(rule.Yes))
		}
	}
}

func claimOf(line string, raised bool) *Claim {
	tail := []string{line}
	if raised {
		tail = []string{"Traceback (most recent call last):", `  File "a.py", line 1, in f`, line}
	}
	r := newReader(tail, Options{})
	return r.claim(len(r.items) - 1)
}

package models

import (
	"reflect"
	"strings"
	"testing"
)

// samples contains a valid text for each setting without a fixed choice.
var samples = map[string]string{
	"lora": "16", "lora-targets": "q_proj,v_proj", "bits": "4", "seq": "2048", "padded": "true", "compile": "true", "masters": "true", "dora": "true", "offload": "optimizer,activations", "accumulate": "8", "sequence-parallel": "4", "target-seq": "128", "head": "masked-lm", "image-size": "224", "classes": "10", "vocabulary": "32000", "checkpointing": "true",
}

// TestSettings: each setting can be given, is shown, and is the same after it was text in
// JSON. No two change the same field.
func TestSettings(t *testing.T) {
	var all Overrides
	for _, s := range Settings() {
		text := samples[s.Name]
		if s.Words != nil {
			text = s.Words[len(s.Words)-1]
		}
		var o Overrides
		if err := s.Set(&o, text); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if s.Text(&o) != text || Told(&o) == "" || len(Texts(&o)) != 1 || Texts(&o)[s.Key()] != text {
			t.Errorf("%s: %q became %q, told as %q, %v", s.Name, text, s.Text(&o), Told(&o), Texts(&o))
		}
		if again, err := FromTexts(Texts(&o)); err != nil || !reflect.DeepEqual(again, o) {
			t.Errorf("%s: %+v became %+v, %v", s.Name, o, again, err)
		}
		if other, ok := SettingNamed(s.Key()); !ok || other.Name != s.Name {
			t.Errorf("%s is not found by its key", s.Name)
		}
		if err := s.Set(&all, text); err != nil {
			t.Error(err)
		}
	}
	if got := len(Texts(&all)); got != len(Settings()) {
		t.Errorf("%d of %d settings are left: %v", got, len(Settings()), Texts(&all))
	}
}

func TestSettingsTold(t *testing.T) {
	for _, c := range []struct{ given, told, texts string }{
		{"lora=r=16,targets=all-linear precision=BF16 seq=2048", "LoRA 16 on all-linear, bf16, seq 2048", "lora=16 lora_targets=all-linear precision=bf16 seq=2048"},
		{"lora=r=8,targets=q_proj,v_proj,alpha=32,dropout=0.1 bits=4", "LoRA 8 on q_proj, v_proj, 4-bit weights", "bits=4 lora=8 lora_targets=q_proj,v_proj"},
		{"lora=4 checkpointing=false optimizer=adamw-8bit", "LoRA 4, adamw8bit, no checkpointing", "checkpointing=false lora=4 optimizer=adamw8bit"},
		{"parallel=fsdp:full image=96", "images of 96 pixels, fsdp:full", "image_size=96 sharding=fsdp:full"},
	} {
		var o Overrides
		for _, word := range strings.Fields(c.given) {
			name, text, _ := strings.Cut(word, "=")
			s, ok := SettingNamed(name)
			if !ok {
				t.Fatal(name)
			}
			if err := s.Set(&o, text); err != nil {
				t.Fatal(err)
			}
		}
		if got := Told(&o); got != c.told {
			t.Errorf("%s is told as %q", c.given, got)
		}
		for _, word := range strings.Fields(c.texts) {
			key, text, _ := strings.Cut(word, "=")
			if Texts(&o)[key] != text {
				t.Errorf("%s: %v", c.given, Texts(&o))
			}
		}
	}
}

func TestSettingsRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"precision", "bf61", `"bf61" is not one of fp32, amp, bf16, fp16; nearest: bf16`},
		{"sharding", "fsdp:ful", `nearest: fsdp:full`},
		{"seq", "0", `"0" is not a whole number from 1 on`},
		{"seq", "99999999999999999999", `is not a whole number`},
		{"bits", "5", `"5" is not 4 or 8`},
		{"checkpointing", "perhaps", `"perhaps" is not true or false`},
		{"lora", "r=16,target=q_proj", `unknown key "target"; nearest: targets`},
		{"lora", "targets=q_proj", `names no rank; write for example r=16,targets=all-linear`},
		{"lora", "q_proj,r=16", `what is "q_proj"?`},
		{"lora", "r=x", `"x" is not a whole number`},
		{"lora", "r=4,targets=", `has an empty name`},
		{"lora-targets", "q_proj,,v_proj", `has an empty name`},
	} {
		s, _ := SettingNamed(c.name)
		var o Overrides
		if err := s.Set(&o, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.name, c.text, err)
		}
	}
	if _, err := FromTexts(map[string]string{"precison": "bf16"}); err == nil || !strings.Contains(err.Error(), `unknown setting "precison"; nearest: precision`) {
		t.Error(err)
	}
	if _, err := FromTexts(map[string]string{"seq": "two"}); err == nil || !strings.HasPrefix(err.Error(), "seq: ") {
		t.Error(err)
	}
}

// TestLayers checks that only the training settings of a network with fixed layers can be
// changed.
func TestLayers(t *testing.T) {
	c := &Config{
		Schema: Schema, Name: "tiny", Family: MLP, Train: Train{Batch: 4}, Inputs: []Input{{Shape: []int64{4}}},
		Layers: []Layer{{Type: Linear, Out: []int64{2}, Params: []int64{8, 2}}},
	}
	for _, s := range Settings() {
		text := samples[s.Name]
		if s.Words != nil {
			text = s.Words[0]
		}
		var o Overrides
		if err := s.Set(&o, text); err != nil {
			t.Fatal(err)
		}
		with := o
		if s.Name == "masters" {
			with.Precision = BF16
		}
		if _, err := c.With(with); s.Layers == (err == nil) {
			t.Errorf("%s: %v", s.Name, err)
		}
		rest := o.WithoutLayers()
		if len(Texts(&rest)) > 0 == s.Layers {
			t.Errorf("%s: without layers %+v", s.Name, rest)
		}
	}
}

package api

import (
	"fmt"
	"maps"
	"strings"

	"carma/configs/models"
	"carma/internal/suggest"
)

// trainingFields returns the settings of trainings as fields of a submission.
func trainingFields() (all []Field) {
	for _, s := range models.Settings() {
		all = append(all, Field{
			Name: s.Name, Help: s.Help + ", for the estimate", Unit: s.Value, Words: s.Words, Label: "carma." + s.Name, train: &s,
		})
	}
	return all
}

// setTraining parses a text into a setting.
func (f *Field) setTraining(s *Submit, text string) error {
	o, err := models.FromTexts(s.Train)
	if err != nil {
		return err
	}
	if err := f.train.Set(&o, text); err != nil {
		return err
	}
	s.Train = models.Texts(&o)
	return nil
}

// takeTraining copies a setting from another submission. A rank includes the layers that
// were given with it.
func (f *Field) takeTraining(s, from *Submit) {
	keys := []string{f.train.Key()}
	if f.train.Name == "lora" && from.Train["lora_targets"] != "" {
		keys = append(keys, "lora_targets")
	}
	for _, key := range keys {
		s.Train = without(s.Train, key)
		if text := from.Train[key]; text != "" {
			s.Train = merged(s.Train, map[string]string{key: text})
		}
	}
}

// without returns a copy of the settings without one key.
func without(train map[string]string, key string) map[string]string {
	if _, there := train[key]; !there {
		return train
	}
	if len(train) == 1 {
		return nil
	}
	rest := maps.Clone(train)
	delete(rest, key)
	return rest
}

// merged returns settings overridden by others. It does not modify its arguments.
func merged(train, over map[string]string) map[string]string {
	all := maps.Clone(train)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, over)
	return all
}

// ChangeTraining overrides existing settings with the given ones.
func (s *Submit) ChangeTraining(train map[string]string) {
	if len(train) > 0 {
		s.Train = merged(s.Train, train)
	}
}

// setSharding parses a word for parallel as the training's sharding: --parallel is a
// number of tasks for arrays, and the sharding of a training for all other tasks.
func setSharding(s *Submit, text string) error {
	f, _ := FieldNamed("sharding")
	if f.Set(s, text) == nil {
		return nil
	}
	return fmt.Errorf("%q is neither a number of tasks nor one of %s; nearest: %s", text, strings.Join(f.Words, ", "), suggest.Names(strings.ToLower(text), f.Words, 1)[0])
}

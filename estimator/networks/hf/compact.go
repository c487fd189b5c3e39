package hf

import (
	"bytes"
	"encoding/json"

	"carma/configs/models"
)

// Compact returns a config.json in one line, with only the fields that its network depends
// on, either with or without the changes of o. The other fields (names of labels, the
// version of the library) are left out. It refuses what [Read] refuses. If a builder reads
// a field without the methods of fields, Compact keeps the whole object.
func Compact(text []byte, o models.Overrides) ([]byte, error) {
	f, err := parse(text)
	if err != nil {
		return nil, err
	}
	if _, err := f.config("model", models.Overrides{}); err != nil {
		return nil, err
	}
	whole, err := f.config("model", o)
	if err != nil {
		return nil, err
	}
	short, err := json.Marshal(f.asked())
	if err == nil {
		if again, err := Read("model", short, o); err == nil && again.Hash() == whole.Hash() {
			return short, nil
		}
	}
	var all bytes.Buffer
	if err := json.Compact(&all, text); err != nil {
		return nil, wrong("", "not JSON: %v", err)
	}
	return all.Bytes(), nil
}

// asked returns the existing fields that were read.
func (f *fields) asked() map[string]any {
	all := map[string]any{}
	for name := range f.read {
		if v := f.values[name]; v != nil {
			all[name] = v
		}
	}
	for name, part := range f.parts {
		if inner := part.asked(); len(inner) > 0 {
			all[name] = inner
		}
	}
	return all
}

// Kind returns the model_type of a config.json, or empty if it has none.
func Kind(text []byte) string {
	f, err := parse(text)
	if err != nil {
		return ""
	}
	kind := f.text("model_type", "")
	if inner, ok := f.part("text_config"); ok && kinds[kind] == nil {
		kind = inner.text("model_type", kind)
	}
	return models.Clip(kind)
}

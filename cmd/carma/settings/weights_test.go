package settings

import (
	"reflect"
	"strings"
	"testing"

	"carma/mapper/model"
	"carma/mapper/rules"
)

func TestWeights(t *testing.T) {
	for _, row := range []struct {
		text, shown, wrong string
		want               []model.Weight
	}{
		{text: "[bob=0.5, ada=2]", shown: "ada=2,bob=0.5", want: []model.Weight{{User: "ada", Weight: 2}, {User: "bob", Weight: 0.5}}},
		{text: "ada = 2, bob = 1", shown: "ada=2,bob=1", want: []model.Weight{{User: "ada", Weight: 2}, {User: "bob", Weight: 1}}},
		{text: "{ada: 2}", shown: "ada=2", want: []model.Weight{{User: "ada", Weight: 2}}},
		{text: "[]", shown: ""},
		{text: "[ada]", wrong: `"ada" is not a user's weight; write for example ada=2`},
		{text: "[=2]", wrong: `"=2" is not a user's weight; write for example ada=2`},
		{text: "[ada=lots]", wrong: `"ada=lots" is not a user's weight; write for example ada=2`},
		{text: "7", wrong: "7 is not a list of weights; write for example [ada=2, bob=0.5]"},
		{text: "[ada=0]", wrong: "gives ada 0, which is not between 0.001 and 1000"},
		{text: "[ada=1, ada=2]", wrong: "names ada twice"},
		{text: "[ada=NaN]", wrong: "gives ada NaN, which is not between 0.001 and 1000"},
	} {
		path := hermetic(t)
		write(t, path, "fair-weights: "+row.text)
		c, _, err := Load(nil)
		switch {
		case row.wrong != "":
			if err == nil || !strings.HasSuffix(err.Error(), "fair-weights: "+row.wrong) {
				t.Errorf("%s: got %v, want %s", row.text, err, row.wrong)
			}
		case err != nil || !reflect.DeepEqual(c.Mapper.FairWeights, row.want) || rules.Format(&c.Mapper.FairWeights) != row.shown:
			t.Errorf("%s: %v, %v", row.text, c.Mapper.FairWeights, err)
		}
	}
}

// TestUserRules checks that an invalid value is refused with the name of the key.
func TestUserRules(t *testing.T) {
	for text, want := range map[string]string{
		"fair-half-life: 1s": "fair-half-life: is 1s, less than a minute; write for example 24h",
		"quota-tasks: -1":    "quota-tasks: is negative (-1); 0 is no limit",
		"quota-memory: -1":   `quota-memory: "-1" is negative`,
		"slot: 1ms":          "slot: is 1ms, less than a second; write for example 2h, or 0 for off",
		"order: fiar":        `order: unknown order "fiar"; did you mean fair?`,
	} {
		path := hermetic(t)
		write(t, path, text)
		if _, _, err := Load(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

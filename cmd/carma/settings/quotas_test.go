package settings

import (
	"reflect"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/rules"
)

func TestQuotas(t *testing.T) {
	for _, row := range []struct {
		text, shown, wrong string
		want               []model.Quota
	}{
		{text: `["@students:tasks=20", "ada:gpus=4 mem=80G"]`, shown: "ada:gpus=4 mem=80G,@students:tasks=20",
			want: []model.Quota{{Name: "ada", GPUs: 4, Memory: 80 * units.GiB}, {Name: "students", Account: true, Tasks: 20}}},
		{text: "{ada: gpus=none}", shown: "ada:gpus=none", want: []model.Quota{{Name: "ada", GPUs: model.NoQuota}}},
		{text: "bob:tasks=1 mem=none", shown: "bob:tasks=1 mem=none", want: []model.Quota{{Name: "bob", Tasks: 1, Memory: model.NoQuota}}},
		{text: "[]", shown: ""},
		{text: "[ada]", wrong: `"ada" is no limit of a user or group; write for example ada:gpus=4 or @students:tasks=20`},
		{text: `["ada:"]`, wrong: `"ada:" is no limit of a user or group; write for example ada:gpus=4 or @students:tasks=20`},
		{text: `["ada:gpu=2"]`, wrong: "ada: gpu=2: unknown limit; there are tasks, gpus and mem"},
		{text: `["@lab:gpus=0"]`, wrong: `@lab: gpus=0: "0" is not a number above 0; write for example 4, or none for no limit`},
		{text: `["ada:mem=80"]`, wrong: `ada: mem=80: 80 what? write 80G`},
		{text: `["ada:mem=0"]`, wrong: `ada: mem=0: "0" leaves nothing; write for example 80G, or none for no limit`},
		{text: `["ada:gpus=1", "ada:tasks=1"]`, wrong: "names ada twice"},
	} {
		path := hermetic(t)
		write(t, path, "quotas: "+row.text)
		c, _, err := Load(nil)
		switch {
		case row.wrong != "":
			if err == nil || !strings.HasSuffix(err.Error(), "quotas: "+row.wrong) {
				t.Errorf("%s: got %v, want %s", row.text, err, row.wrong)
			}
		case err != nil || !reflect.DeepEqual(c.Mapper.Quotas, row.want) || rules.Format(&c.Mapper.Quotas) != row.shown:
			t.Errorf("%s: %v, %v", row.text, c.Mapper.Quotas, err)
		}
	}
}

package original

import (
	"bytes"
	"strings"
	"testing"
)

// rad returns a .rad file with one changed line, or unchanged if line is 0.
func rad(line int, text string) string {
	lines := []string{"# a comment", "conda activate tf", "python /home/x/resnet50.py --batch_size 64", "resnet50_64.model", "/raid/datasets/imagenet", "64", "exclusive", "1", "7106", "14910.3711", "5337.0131", "16000"}
	if line > 0 {
		lines[line-1] = text
	}
	return strings.Join(lines, "\n")
}

func TestRad(t *testing.T) {
	got, err := ParseRad("x.rad", strings.NewReader(rad(0, "")+"\r\n\n"))
	want := Rad{"# a comment", "conda activate tf", "python /home/x/resnet50.py --batch_size 64", "resnet50_64.model", "/raid/datasets/imagenet", 64, 1, 7106, 14910.3711, 5337.0131, 16000}
	if err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	var b bytes.Buffer
	if err := got.Write(&b); err != nil || b.String() != rad(0, "")+"\n" {
		t.Errorf("%v\n%s", err, b.String())
	}
	short := strings.Join(strings.Split(rad(0, ""), "\n")[:8], "\n") // like gpt2_xl.rad
	if got, err := ParseRad("x.rad", strings.NewReader(short)); err != nil || got.GPUs != 1 || got.Peak != 0 {
		t.Errorf("%+v %v", got, err)
	}
	for _, c := range []struct{ content, want string }{
		{"", "x.rad:1: the file ends here; a .rad file has 12 lines, the 8th the number of GPUs"},
		{"# a\nconda\n", "x.rad:2: the file ends here"},
		{rad(0, "") + "\nmore", "x.rad:13: a .rad file has 12 lines"},
		{rad(3, ""), "x.rad:3: no command"},
		{rad(6, "many"), `x.rad:6: batch size "many" is not a whole number from 1 on`},
		{rad(7, "1"), `x.rad:7: "1" stands where exclusive belongs; is a line missing or too many?`},
		{rad(8, "0"), `x.rad:8: number of GPUs "0" is not a whole number from 1 to 64`},
		{rad(8, "all"), `x.rad:8: number of GPUs "all"`},
		{rad(9, "lots"), `x.rad:9: memory "lots" is not an amount in MiB; write for example 7106, or 40000 where none is known`},
		{rad(12, "-1"), `x.rad:12: memory "-1"`},
		{rad(10, "NaN"), `x.rad:10: memory "NaN"`},
		{rad(11, "Inf"), `x.rad:11: memory "Inf"`},
	} {
		if _, err := ParseRad("x.rad", strings.NewReader(c.content)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// FuzzRad: for any file the answer is a valid file, which is written and read as
// the same, or one line that names a line.
func FuzzRad(f *testing.F) {
	f.Add(rad(0, ""))
	f.Add(rad(1, "# carma: workload=vgg") + "\n\n")
	f.Fuzz(func(t *testing.T, content string) {
		got, err := ParseRad("x.rad", strings.NewReader(content))
		if err != nil {
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "x.rad:") {
				t.Errorf("%q", err)
			}
			return
		}
		if got.GPUs < 1 || got.Batch < 1 || got.Peak < 0 || got.Command == "" {
			t.Errorf("%+v", got)
		}
		var b bytes.Buffer
		if err := got.Write(&b); err != nil {
			t.Fatal(err)
		}
		if again, err := ParseRad("x.rad", &b); err != nil || again != got {
			t.Errorf("%v\n%+v\n%+v", err, again, got)
		}
		_, _ = got.workload("x")
	})
}

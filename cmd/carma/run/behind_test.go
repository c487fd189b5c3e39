package run

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"carma/runner/api"
)

// TestBehind checks that the arguments after the image belong to the program, except carma's
// own flags directly after the image.
func TestBehind(t *testing.T) {
	for _, c := range []struct {
		line    string // the image is called img
		program string
		want    func(api.Submit) bool
		warned  string // flags, in order
	}{
		{"img", "", nil, ""},
		{"img --est-model resnet50", "", func(s api.Submit) bool { return s.EstModel == "resnet50" }, ""},
		{"img --est-model=resnet50", "", func(s api.Submit) bool { return s.EstModel == "resnet50" }, ""},
		{"img --est-model resnet50 python train.py --lr 0.1", "python train.py --lr 0.1", func(s api.Submit) bool { return s.EstModel == "resnet50" }, ""},
		{"img --est-model resnet50 --epochs 3", "--epochs 3", func(s api.Submit) bool { return s.EstModel == "resnet50" }, ""},
		{"img --host-mem 8G --est-model resnet50 --shm-size 1G x", "x", func(s api.Submit) bool { return s.EstModel == "resnet50" && s.HostMem == 8<<30 && s.ShmSize == 1<<30 }, ""},
		{"img --label a=b --user-label c=d x", "--label a=b --user-label c=d x", nil, "user-label"},
		{"--gpus 2 img --est-model resnet50", "", func(s api.Submit) bool { return s.EstModel == "resnet50" && s.GPUs == 2 }, ""},

		// Two dashes end carma's flags. They are not passed to the program, but later ones are.
		{"img -- --est-model own", "--est-model own", func(s api.Submit) bool { return s.EstModel == "" }, ""},
		{"img --est-model resnet50 -- --est-model own", "--est-model own", func(s api.Submit) bool { return s.EstModel == "resnet50" }, ""},
		{"img run -- --est-model own", "run -- --est-model own", nil, ""},

		// A program keeps its flags that have the same name as carma's.
		{"img --epochs 3 --batch-size 64 --gpus 2 --name x", "--epochs 3 --batch-size 64 --gpus 2 --name x", func(s api.Submit) bool { return s.BatchSize == 0 && s.GPUs == 0 && s.Name == "" }, ""},
		{"img --batch-size 64", "--batch-size 64", func(s api.Submit) bool { return s.BatchSize == 0 }, ""},
		{"img --help", "--help", nil, ""},
		{"img -d -e A=b --mem", "-d -e A=b --mem", nil, ""},
		{"--batch-size 64 --est-model resnet50 img --batch-size 64", "--batch-size 64", func(s api.Submit) bool { return s.BatchSize == 64 }, ""},

		// A flag that was likely meant for carma is reported.
		{"img --gpus 2 train.py", "--gpus 2 train.py", func(s api.Submit) bool { return s.GPUs == 0 }, "gpus"},
		{"img --mem=8G", "--mem=8G", func(s api.Submit) bool { return s.Mem == 0 }, "mem"},
		{"img --est-model resnet50 --batch-size 64 --epochs 3", "--batch-size 64 --epochs 3", func(s api.Submit) bool { return s.BatchSize == 0 && s.EstModel == "resnet50" }, "batch-size"},
		{"--est-model resnet50 img train.py --batch-size 64", "train.py --batch-size 64", func(s api.Submit) bool { return s.BatchSize == 0 }, "batch-size"},
		{"img train.py --est-model resnet50", "train.py --est-model resnet50", func(s api.Submit) bool { return s.EstModel == "" }, "est-model"},
		{"img train.py --est-model a --est-model b", "train.py --est-model a --est-model b", nil, "est-model"},
		{"img --est-model resnet50 train.py --est-model own", "train.py --est-model own", func(s api.Submit) bool { return s.EstModel == "resnet50" }, ""},
	} {
		o, cmd := options{}, &cobra.Command{}
		o.flags(cmd)
		cmd.Flags().SetInterspersed(false)
		if err := cmd.ParseFlags(strings.Fields(c.line)); err != nil {
			t.Fatal(err)
		}
		args := cmd.Flags().Args()
		program, warnings, err := behind(cmd, args[1:])
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		if got := strings.Join(program, " "); got != c.program {
			t.Errorf("%s: the program gets %q, want %q", c.line, got, c.program)
		}
		var flags []string
		for _, w := range warnings {
			name, _, _ := strings.Cut(strings.TrimPrefix(w, "--"), " ")
			flags = append(flags, name)
		}
		if !slices.Equal(flags, strings.Fields(c.warned)) {
			t.Errorf("%s: warned of %q, want %q", c.line, warnings, c.warned)
		}
		if s, err := o.submit(append([]string{"img"}, program...)); err != nil || c.want != nil && !c.want(s) {
			t.Errorf("%s: %+v, %v", c.line, s, err)
		}
	}
}

// TestOwnFlags: the flags that may follow the image exist, have a value, and are
// named by run --help.
func TestOwnFlags(t *testing.T) {
	o, cmd := options{}, &cobra.Command{}
	o.flags(cmd)
	help := Command(nil).Long
	for _, name := range own {
		if f := cmd.Flags().Lookup(name); f == nil || f.NoOptDefVal != "" || !strings.Contains(help, "--"+name) {
			t.Errorf("--%s: %+v", name, f)
		}
	}
}

package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"carma/cmd/carma/suite/compose"
	"carma/runner/api"
)

// homeWithEnvironments returns a user's home with conda environments base, exp and two, and the
// virtual environment v. It becomes the working folder.
func homeWithEnvironments(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	for _, dir := range []string{"miniconda3/conda-meta", "miniconda3/envs/exp/conda-meta", "miniconda3/envs/two/conda-meta", "v"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "v/pyvenv.cfg"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"CONDA_PREFIX", "CONDA_EXE", "MAMBA_ROOT_PREFIX"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	t.Chdir(home)
	return home
}

// lineOf returns the request that carma run makes from a command line.
func lineOf(words []string) (api.Submit, error) {
	o, cmd := options{}, &cobra.Command{}
	o.flags(cmd)
	cmd.Flags().SetInterspersed(false)
	if err := cmd.ParseFlags(words); err != nil {
		return api.Submit{}, err
	}
	args := cmd.Flags().Args()
	if err := o.named(cmd, args); err != nil {
		return api.Submit{}, err
	}
	switch bare, err := o.bare(cmd); {
	case err != nil:
		return api.Submit{}, err
	case bare:
		args = append([]string{""}, args...)
	default:
		program, _, err := behind(cmd, args[1:])
		if err != nil {
			return api.Submit{}, err
		}
		args = append(args[:1:1], program...)
	}
	s, err := o.submission(strings.NewReader(""), args)
	if err != nil {
		return api.Submit{}, err
	}
	return s.Tasks[0], nil
}

// TestBare checks the image of a command line, or the environment or folder that replaces it.
func TestBare(t *testing.T) {
	home := homeWithEnvironments(t)
	t.Setenv("exp", "mine")
	t.Setenv("KEY", "k")
	exp := "conda:" + home + "/miniconda3/envs/exp"
	for line, want := range map[string]string{
		"--env exp -- python train.py":        exp + " [] python train.py",
		"-e exp -- python --env x -- y":       exp + " [] python --env x -- y",
		"-e A=1 -e exp -- python":             exp + " [A=1] python",
		"-e exp -e A=1 --gpus 2 -- img cmd":   exp + " [A=1] img cmd",
		"-e base -- python":                   "conda:" + home + "/miniconda3 [] python",
		"-e ./miniconda3/envs/exp -- python":  exp + " [] python",
		"--conda exp -- python":               exp + " [] python",
		"--conda exp -e KEY -- python":        exp + " [KEY=k] python",
		"--conda ~/miniconda3/envs/exp -- ls": exp + " [] ls",
		"--venv v -- python":                  "venv:" + home + "/v [] python",
		"--venv v -e exp -- python":           "venv:" + home + "/v [exp=mine] python",
		"--host -- nvidia-smi -L":             "host [] nvidia-smi -L",
		"--host nvidia-smi -L":                "host [] nvidia-smi -L",
		"--host -e exp -- env":                "host [exp=mine] env",

		// With an image, the flags have docker's meaning.
		"-e exp img python":         "img [exp=mine] python",
		"-e KEY img -- python":      "img [KEY=k] python",
		"-e A=1 -- img python":      "img [A=1] python",
		"-- img python":             "img [] python",
		"--gpus 2 -- img -e exp":    "img [] -e exp",
		"img -e exp -- python":      "img [] -e exp -- python",
		"--env-file /dev/null -- i": "i [] ",
	} {
		s, err := lineOf(strings.Fields(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := fmt.Sprintf("%s %v %s", s.Source(), s.Env, strings.Join(s.Command, " ")); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		if s.Bare() && s.WorkDir != home || !s.Bare() && s.WorkDir != "" {
			t.Errorf("%s: working folder %q", line, s.WorkDir)
		}
	}
}

// TestBareWrong checks that wrong input gives a message of one line with a fix.
func TestBareWrong(t *testing.T) {
	home := homeWithEnvironments(t)
	t.Setenv("KEY", "k")
	for line, want := range map[string]string{
		"":                                "no image named; write for example: carma run --mem 8G my/training:1, or without an image: carma run --conda exp -- python train.py",
		"--conda exp":                     "no program named; write for example: carma run --conda exp -- python train.py",
		"--conda exp --":                  "no program named; write for example: carma run --conda exp -- python train.py",
		"-e exp --":                       "no program named; write for example: carma run --conda exp -- python train.py",
		"--conda exq -- python":           "--conda exq: no conda environment of that name in ~/miniconda3/envs; did you mean exp? there are base, exp, two",
		"-e zzzzzz -- python":             "-e zzzzzz: no conda environment of that name in ~/miniconda3/envs; there are base, exp, two",
		"-e KEY -- python":                `-e KEY: no conda environment of that name in ~/miniconda3/envs; there are base, exp, two; for your variable write -e KEY="$KEY", or the image before --`,
		"--env ../../x -- python":         "-e ../../x: " + filepath.Join(home, "../../x") + " is no conda environment: it has no folder conda-meta; conda create -p makes one",
		"-e exp -e two -- python":         "-e exp -e two: without an image one of them would be a conda environment; write --conda exp; then -e takes variables of yours",
		"--conda exp img -- python":       "img stands where an image would, and the task has none; leave it out, or write -- before the program",
		"--conda exp --venv v -- python":  "--venv: it does not go with conda; leave one of them out",
		"--conda exp --host -- python":    "--host: it does not go with conda; leave one of them out",
		"--venv w -- python":              "--venv w: no virtual environment: " + home + "/w/pyvenv.cfg: no such file or directory; python3 -m venv w makes one",
		"--host --entrypoint x -- python": "--entrypoint: it replaces an image's, and there is none; write the program as the command",
		"--host --pull never -- python":   "--pull: without an image there is nothing to fetch; leave it out",
		"--host -w x -- python":           "--workdir: x is not absolute; it is a folder in the container",
	} {
		if _, err := lineOf(strings.Fields(line)); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v\nwant\n%s", line, err, want)
		}
	}
}

// TestBareEverywhere checks that the alternatives to an image have the same meaning as a flag,
// in a task file and in x-carma, and that each requires a program.
func TestBareEverywhere(t *testing.T) {
	home := homeWithEnvironments(t)
	for name, text := range map[string]string{"conda": home + "/miniconda3/envs/exp", "venv": home + "/v", "host": "true"} {
		flag := submissionBy(t, "--"+name+"="+text, "--workdir="+home, "", "python", "train.py")
		want := jsonOf(t, flag)
		file := writeFile(t, home, "tasks.yaml", name+": "+text+"\nworkdir: "+home+"\ncommand: python train.py\n")
		if got := jsonOf(t, submissionBy(t, "-f", file)); got != want {
			t.Errorf("task file %s\nflags     %s", got, want)
		}
		service := "services:\n  a:\n    image: my/image\n    command: [python, train.py]\n    working_dir: " + home + "\n    x-carma: {" + name + ": " + text + "}\n"
		s, err := compose.Load(t.Context(), "compose.yaml", []byte(service), compose.Options{Name: "s", Folder: home})
		if err != nil {
			t.Fatal(err)
		}
		request, err := s.Submission()
		if err != nil {
			t.Fatal(err)
		}
		request.Tasks[0].Part = ""
		if got := jsonOf(t, request.Tasks); got != want {
			t.Errorf("Compose file %s\nflags        %s", got, want)
		}
		bad := writeFile(t, home, "bad.yaml", name+": "+text+"\nimage: my/image\ncommand: python train.py\n")
		o, cmd := options{}, &cobra.Command{}
		o.flags(cmd)
		if err := cmd.ParseFlags([]string{"-f", bad}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.submission(strings.NewReader(""), nil); err == nil || !strings.Contains(err.Error(), "it takes the place of the image my/image; leave one of them out") {
			t.Errorf("%s and an image: %v", name, err)
		}
	}
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

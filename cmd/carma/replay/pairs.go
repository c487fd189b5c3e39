package replay

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/configs/workloads"
	"carma/mapper/sim"
	"carma/mapper/sim/pairs"
)

// pairsFlags contains the flags of a replay of measured pairs, as typed.
type pairsFlags struct{ pairs, profiles string }

func (f *pairsFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.pairs, "pairs", "", "score the interference model on this CSV `file` of measured pairs; no trace")
	cmd.Flags().StringVar(&f.profiles, "profiles", "", "with --pairs: CSV `file` of the tasks' runs alone (default: the shipped workloads)")
}

// given reports whether a command line is about pairs.
func (f *pairsFlags) given(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("pairs") || cmd.Flags().Changed("profiles")
}

// check refuses flags that do not go with pairs.
func (f *pairsFlags) check(cmd *cobra.Command, args []string) error {
	if !cmd.Flags().Changed("pairs") {
		return cli.Usagef("add --pairs FILE, or leave it out", "--profiles is for measured pairs")
	}
	if len(args) > 0 {
		return cli.Usagef("leave it out", "--pairs takes no trace, not %q", args[0])
	}
	var err error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "pairs", "profiles", "json", "socket", "context", "config", "help":
		default:
			if err == nil {
				err = cli.Usagef("leave it out", "--%s is for a trace, not for measured pairs", flag.Name)
			}
		}
	})
	return err
}

// scoredPairs contains measured pairs with the model's predictions.
type scoredPairs struct {
	file string
	pairs.Measured
	predicted [][2]float64 // speeds, in the order of Pairs
	scores    pairs.Scores
}

// runPairs scores the interference model on measured pairs.
func runPairs(a *cli.App, f pairsFlags, asJSON bool) error {
	s, err := f.score()
	switch {
	case err != nil:
		return cli.Usagef("", "%v", err)
	case len(s.Pairs) == 0:
		first := s.Skipped[0]
		return cli.Usagef("", "%s:%d: %s; none of %d pairs can be scored", s.file, first.Line, first.Reason, len(s.Skipped))
	case asJSON:
		return a.JSON(s.json())
	}
	return s.print(a.Out)
}

func (f *pairsFlags) score() (*scoredPairs, error) {
	profiles, err := f.readProfiles()
	if err != nil {
		return nil, err
	}
	file, err := pairs.Open(f.pairs)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s := &scoredPairs{file: f.pairs}
	if s.Measured, err = pairs.Read(f.pairs, file, profiles); err != nil {
		return nil, err
	}
	for _, p := range s.Pairs {
		x, y := s.scores.Add(p, sim.Fitted)
		s.predicted = append(s.predicted, [2]float64{x, y})
	}
	return s, nil
}

func (f *pairsFlags) readProfiles() (map[string]pairs.Profile, error) {
	if f.profiles == "" {
		return shippedProfiles(), nil
	}
	file, err := pairs.Open(f.profiles)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return pairs.ReadProfiles(f.profiles, file)
}

// shippedProfiles returns the solo runs of the shipped workloads.
func shippedProfiles() map[string]pairs.Profile {
	profiles := map[string]pairs.Profile{}
	for _, w := range workloads.All() {
		profiles[w.Solo.ID] = pairs.Profile{
			Task: pairs.Task{ID: w.Solo.ID, Family: w.Model + " " + w.Dataset, Load: sim.Load{
				SMACT: w.Activity.SMACT, SMOCC: w.Activity.SMOCC, DRAMA: w.Activity.DRAMA, Step: w.StepTime().Seconds(),
			}},
			Measured: w.Solo.Span != "", // otherwise its activity belongs to another task
			GPUs:     w.GPUs,
		}
	}
	return profiles
}

package command

import "carma/configs/patterns"

var (
	resumeName     = patterns.New(`^(?:auto_?)?(?:resume|resume_from|resume_from_checkpoint|resume_path|resume_ckpt|resume_checkpoint|ckpt_path|restore|restore_from|restore_path|load_checkpoint|init_from|continue_from|restart_from|load)$`)
	checkpointName = patterns.New(`^(?:output_dir|out_?dir|output_path|save_dir|save_path|save|save_folder|checkpoints?_dir|ckpt_dir|checkpoint_path|work_dir|default_root_dir|exp_dir|run_dir|train_dir|model_dir|serialization_dir)$`)
)

// folders reads what a program resumes from, and where it saves checkpoints.
func (r *reader) folders(args []string) {
	for _, o := range argumentsOf(args) {
		switch o := o; {
		case resumeName().MatchString(o.name) && o.value != "false" && o.value != "False" && o.value != "none" && o.value != "None":
			r.Resume = &Fact{o.value, o.String()}
		case checkpointName().MatchString(o.name) && o.value != "":
			r.Checkpoints = &Fact{o.value, o.String()}
		}
	}
}

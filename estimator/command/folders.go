package command

import "carma/internal/lazyregexp"

var (
	resumeName     = lazyregexp.New(`^(?:auto_?)?(?:resume|resume_from|resume_from_checkpoint|resume_path|resume_ckpt|resume_checkpoint|ckpt_path|restore|restore_from|restore_path|load_checkpoint|init_from|continue_from|restart_from|restore_file|load_from_checkpoint|continue_training|load)$`)
	checkpointName = lazyregexp.New(`^(?:output_dir|out_?dir|output_path|save_dir|save_path|save|save_folder|checkpoints?_dir|ckpt_dir|checkpoint_path|work_dir|default_root_dir|exp_dir|run_dir|train_dir|model_dir|default_local_dir|serialization_dir)$`)
)

// folders reads the checkpoint from which a named program resumes, and the folder for its
// checkpoints.
func (r *reader) folders(name string, args []string) {
	for _, o := range argumentsOf(args) {
		switch o := o; {
		case name == "nnUNetv2_train" && o.word == "--c":
			r.Resume = &Fact{o.value, o.String()}
		case resumeName().MatchString(o.name) && o.value != "false" && o.value != "False" && o.value != "none" && o.value != "None":
			r.Resume = &Fact{o.value, o.String()}
		case checkpointName().MatchString(o.name) && o.value != "":
			r.Checkpoints = &Fact{o.value, o.String()}
		}
	}
}

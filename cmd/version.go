package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X kseg/cmd.version=1.0.0).
var version = "devel"

// versionLine says which kseg this is and whose files it follows.
func versionLine() string {
	text := "kseg " + version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				text += " (" + setting.Value[:min(12, len(setting.Value))] + ")"
			}
		}
	}
	return text + fmt.Sprintf(", follows Kafka 4.4.0, %s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersionCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    `Prints one line: the version, the Kafka release whose behaviour it follows, and the platform.`,
		Example: `  kseg version`,
		Args:    noOperands,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(env.Stdout, versionLine())
			return err
		},
	}
}

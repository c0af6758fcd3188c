package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kseg/format"
)

// writeReport writes a file that the user named for a report beside stdout, such as a picture. A file with a name that Kafka
// gives is never written: that would be one of the inputs.
func writeReport(file string, data []byte) error {
	if name := format.ParseFileName(filepath.Base(file)); name.Kind != format.KindUnknown {
		return usageErrorf("%s has the name of one of Kafka's files (%s); give another name for the report", file, name.Kind.Title())
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return fmt.Errorf("%s: cannot be written: %w", file, err)
	}
	return nil
}

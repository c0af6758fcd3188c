package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kseg/format"
)

// The first bytes of the reports that are written: a picture and a page.
const svgStart, htmlStart = "<svg", "<!DO"

// checkReport refuses a file for a report beside stdout that may be an input: one with a name that Kafka gives, or one
// that is there and is no such report (a carved segment has any name, and a link may lead to a log). "" is no file.
func checkReport(file string) error {
	if file == "" {
		return nil
	}
	if name := format.ParseFileName(filepath.Base(file)); name.Kind != format.KindUnknown {
		return usageErrorf("%s has the name of one of Kafka's files (%s); give another name for the report", file,
			name.Kind.Title())
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return nil // writing tells what is wrong
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%s: cannot be written: %w", file, bare(err))
	}
	defer f.Close()
	start := make([]byte, len(svgStart))
	n, err := io.ReadFull(f, start)
	if s := string(start[:n]); n > 0 && s != svgStart && s != htmlStart {
		return usageErrorf("%s is there already, and is no earlier report; it is left as it is, give another name", file)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: cannot be read: %w", file, bare(err))
	}
	return nil
}

// writeReport writes a file that checkReport lets pass.
func (env *Env) writeReport(file string, data []byte) error {
	release, err := env.holdFiles()
	if err != nil {
		return err
	}
	defer release()
	if err := checkReport(file); err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return fmt.Errorf("%s: cannot be written: %w", file, bare(err))
	}
	return nil
}

// bare is err without the path, which the sentence has already.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

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

// pictureStart is how a picture begins.
const pictureStart = "<svg"

// checkPicture refuses a file for a picture that may be an input: one with a name that Kafka gives, or one that is there and is
// no picture (a carved segment has any name, and a link may lead to a log). "" is no file.
func checkPicture(file string) error {
	if file == "" {
		return nil
	}
	if name := format.ParseFileName(filepath.Base(file)); name.Kind != format.KindUnknown {
		return usageErrorf("%s has the name of one of Kafka's files (%s); give another name for the picture", file, name.Kind.Title())
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return nil // writing tells what is wrong
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%s: cannot be written: %w", file, bare(err))
	}
	defer f.Close()
	start := make([]byte, len(pictureStart))
	n, err := io.ReadFull(f, start)
	if n > 0 && string(start[:n]) != pictureStart {
		return usageErrorf("%s is there already and is no picture; it is left as it is, give another name", file)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: cannot be read: %w", file, bare(err))
	}
	return nil
}

// writePicture writes a file that checkPicture lets pass.
func writePicture(file string, data []byte) error {
	if err := checkPicture(file); err != nil {
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

// One way of a Go program to change a file and to sync it: a row of the table in ways_test.cc, as
// ways.c. Go makes system calls by instructions of its own, and needs no C library.
//
//	ways_go FILE CHANGE SYNC END
package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

const size = 1 << 20

var new = []byte("newdata\x00")

func must(what string, err error) {
	if err == nil {
		return
	}
	fmt.Printf("refused %s: %v\n", what, err)
	os.Exit(9)
}

func msync(memory []byte) error {
	_, _, errno := syscall.Syscall(syscall.SYS_MSYNC, uintptr(unsafe.Pointer(&memory[0])),
		uintptr(len(memory)), syscall.MS_SYNC)
	if errno != 0 {
		return errno
	}
	return nil
}

func main() {
	name, change, sync, end := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0644)
	must("open", err)
	must("truncate", file.Truncate(size))
	memory, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	must("mmap", err)
	for i := range memory {
		memory[i] = 'o'
	}
	must("fsync", file.Sync())
	must("fsync", file.Sync())

	switch change {
	case "store":
		copy(memory, new)
	case "pwrite":
		_, err = file.WriteAt(new, 0)
		must(change, err)
	case "synchronous":
		other, err := os.OpenFile(name, os.O_RDWR|os.O_SYNC, 0)
		must(change, err)
		_, err = other.WriteAt(new, 0)
		must(change, err)
	case "goroutine":
		done := make(chan bool)
		go func() { copy(memory, new); done <- true }()
		<-done
	case "renamed-over":
		made := name + ".new"
		must(change, os.WriteFile(made, new, 0644))
		must(change, os.Rename(made, name))
	default:
		os.Exit(2)
	}

	switch sync {
	case "none":
	case "msync":
		must(sync, msync(memory[:4096]))
	case "fsync":
		must(sync, file.Sync())
	case "fdatasync":
		must(sync, syscall.Fdatasync(int(file.Fd())))
	case "sync":
		syscall.Sync()
	default:
		os.Exit(2)
	}
	fmt.Println("synced")
	if end == "kill" {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

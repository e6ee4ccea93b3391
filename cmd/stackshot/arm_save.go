package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"stackshot/internal/arm"
	"stackshot/internal/extract"
	"stackshot/internal/publish"
	"stackshot/internal/urgency"
	"stackshot/snapshot"
)

// save makes and writes the file of what a SysRq recorded, and shows its first screen. A failure is
// counted and shown: the machine stays armed.
func (a *arming) save(ctx context.Context, image *arm.Image) {
	a.own.forget()
	urgency.Begin()
	defer urgency.End()
	a.captures++
	out, res, err := a.collate(image)
	if err != nil {
		a.lost++
		say(os.Stderr, "!! SysRq %s: the capture is lost: %v", a.key, err)
		return
	}
	defer out.Close()
	plain, err := out.Bytes()
	if err != nil {
		a.lost++
		say(os.Stderr, "!! SysRq %s: the capture is lost: %v", a.key, err)
		return
	}
	if len(res.Missing) > 0 {
		a.lacking++
		say(os.Stderr, "!! SysRq %s: incomplete: %s", a.key, strings.Join(res.Missing, "; "))
	}
	a.deliver(ctx, time.Unix(0, int64(res.At.Realtime)), plain)
}

// collate makes the file in memory, and gives the image back.
func (a *arming) collate(image *arm.Image) (out *publish.Spool, res *extract.Result, err error) {
	defer func() { err = errors.Join(err, image.Free()) }()
	if out, err = publish.NewSpool("snapshot"); err != nil {
		return nil, nil, err
	}
	if res, err = extract.Collate(out, extract.FromMemory(image.Region), extract.Options{Version: snapshot.Version(), Own: a.take.options.Warnings}); err != nil {
		out.Close()
		return nil, nil, err
	}
	return out, res, nil
}

// ordinary takes an ordinary capture where no program may walk the tasks.
func (a *arming) ordinary(ctx context.Context) {
	a.own.forget()
	urgency.Begin()
	defer urgency.End()
	a.captures++
	at := time.Now()
	shot, err := a.shoot(ctx, func(r snapshot.Request) (*snapshot.Result, error) { return snapshot.Take(ctx, a.take.options, r) })
	if err != nil {
		a.lost++
		say(os.Stderr, "!! SysRq %s: no capture: %v", a.key, err)
		return
	}
	defer shot.out.Close()
	if err := a.incomplete(shot.res); err != nil {
		a.lacking++
		say(os.Stderr, "!! SysRq %s: %v", a.key, err)
	}
	a.deliver(ctx, at, shot.plain)
}

// deliver writes the file of a capture and shows it (C1).
func (a *arming) deliver(ctx context.Context, at time.Time, plain []byte) {
	d, envelope := a.target(at)
	file := a.take.save(ctx, d, envelope, plain)
	urgency.End()
	shown := a.present(ctx, d, file, plain, true)
	switch {
	case file.where == "":
		a.lost++
	case file.err != nil:
		a.spared++
	}
	if file.err != nil {
		say(os.Stderr, "!! SysRq %s: %v", a.key, file.err)
	} else {
		say(os.Stderr, "SysRq %s: wrote %s, %s", a.key, file.where, humanBytes(file.size))
	}
	if shown != nil {
		say(os.Stderr, "!! %v", shown)
	}
}

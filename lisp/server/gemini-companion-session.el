;;; gemini-companion-session.el --- The connected CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A session is a connected CLI.  This file has the list of sessions, their names for
;; the user, and the terminal of each in this Emacs.  A session is a plist from the
;; server:
;;
;; `:id'         a string, unique on its host
;; `:remote'     the remote host on which the CLI runs, such as "/ssh:host:"
;; `:client'     a key of `gemini-companion-clients'
;; `:version'    the version of the CLI, a string
;; `:pid'        the ID of its process
;; `:identity'   distinguishes the process from a later one with the same ID
;; `:directory'  the working directory of the process
;;
;; All but `:id' and `:client' may be nil: `:remote' is nil for this machine, the
;; others if the server could not determine them.

;;; Code:

(require 'gemini-companion-cache)
(require 'gemini-companion-choice)
(require 'gemini-companion-clients)
(require 'gemini-companion-commands)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'map)

;;;; State

(defvar gemini-companion-session--all nil
  "The sessions that the server has reported, a list of plists.")

(defvar-local gemini-companion-session-remote-directory nil
  "Remote directory of the CLI that was started in this buffer, or nil.
The terminal itself is a local process.")
;; Modes of terminals kill other local variables.
(put 'gemini-companion-session-remote-directory 'permanent-local t)

(defvar gemini-companion-session-doing-function #'ignore
  "Function that returns what the CLI of a session is doing, a word, or nil.
`state' sets it.")

(defvar gemini-companion-session-changed-functions nil
  "Functions called after CLIs have connected or disconnected.
Each is called with the previous value of `gemini-companion-sessions'.")

;;;; Sessions

(defun gemini-companion-sessions ()
  "Return the sessions of the connected CLIs, a list of plists.
A CLI that reconnects may have its old session as well; the value has one
session of each CLI."
  (seq-uniq gemini-companion-session--all #'gemini-companion-session-same-p))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'connected)))
  "Return the connected CLIs."
  (gemini-companion-sessions))

(defun gemini-companion-session-connected-p (session)
  "Return non-nil if SESSION is connected."
  (cl-member session gemini-companion-session--all
             :test #'gemini-companion-session--equal-p))

(defun gemini-companion-session--equal-p (a b)
  "Return non-nil if A and B are one session, with the same ID and host."
  (and (equal (plist-get a :id) (plist-get b :id))
       (equal (plist-get a :remote) (plist-get b :remote))))

(defun gemini-companion-session-same-p (a b)
  "Return non-nil if A and B are sessions of the same CLI.
Only sessions on this host are compared by process: a remote host could report
any process ID."
  (or (gemini-companion-session--equal-p a b)
      (and (not (plist-get a :remote))
           (not (plist-get b :remote))
           (plist-get a :pid)
           (eql (plist-get a :pid) (plist-get b :pid))
           (eql (plist-get a :identity) (plist-get b :identity)))))

(defun gemini-companion-session-next-p (session other)
  "Return non-nil if SESSION receives what waits for OTHER.
Both are of the same CLI; or the CLI of OTHER has exited, and the CLI of SESSION
is of the same kind, in the same directory."
  (or (gemini-companion-session-same-p session other)
      (and (not (gemini-companion-session-connected-p other))
           (seq-every-p (lambda (key)
                          (equal (plist-get session key) (plist-get other key)))
                        '(:client :directory :remote)))))

;;;; Names

(defun gemini-companion-session-title (session)
  "Return the name of the program of SESSION, such as \"Gemini CLI\"."
  (gemini-companion-client-title (plist-get session :client)))

(defun gemini-companion-session-directory-name (directory remote)
  "Return the base name of DIRECTORY, or else the title of the host REMOTE.
Return nil if both are nil."
  (cond (directory
         (gemini-companion-names-shown
          (file-name-nondirectory (directory-file-name directory)) 30))
        (remote (gemini-companion-names-title remote))))

(defun gemini-companion-session-name (session)
  "Return the name of SESSION for the user, such as \"Qwen Code (shop)\".
If the directory and the host are unknown, or if another connected CLI has the
same name, it includes the process, as in \"Qwen Code (shop, process 12)\", or
the beginning of the `:id' of SESSION if the process is unknown."
  (pcase-let (((map :id :pid :directory :remote) session))
    (let* ((directory-name (gemini-companion-session-directory-name directory remote))
           (process (when (or (null directory-name)
                              (gemini-companion-session--namesake-p session))
                      (cond (pid (format "process %d" pid))
                            (id (format "session %.8s" id))))))
      (format "%s (%s)" (gemini-companion-session-title session)
              (string-join (delq nil (list directory-name process)) ", ")))))

(defun gemini-companion-session--namesake-p (session)
  "Return non-nil if another CLI has the title and the directory of SESSION.
Only the base name of the directory counts."
  (let ((name-of (lambda (session)
                   (pcase-let (((map :directory :remote) session))
                     (list (gemini-companion-session-title session)
                           (gemini-companion-session-directory-name
                            directory remote))))))
    (seq-some (lambda (other)
                (and (not (gemini-companion-session-same-p session other))
                     (equal (funcall name-of session) (funcall name-of other))))
              (gemini-companion-sessions))))

(defun gemini-companion-session-reconnect (condition)
  "Return how to reconnect the CLIs that are connected now, or nil.
The value is a phrase, such as: run /ide enable in Gemini CLI CONDITION.
CLIs that reconnect by themselves are omitted."
  (let* ((clients (seq-uniq (mapcar (lambda (session) (plist-get session :client))
                                    (gemini-companion-sessions))))
         (groups (seq-group-by (lambda (client)
                                 (gemini-companion-client-reconnect-command client))
                               clients))
         (phrases (cl-loop for (command . clients) in groups
                           when command
                           collect (format "run %s in %s" command
                                           (gemini-companion-clients-titles
                                            clients)))))
    (when phrases
      (concat (string-join phrases ", ") " " condition))))

(defun gemini-companion-session-read (sessions)
  "Read one of SESSIONS, or return it if it is the only one.
The default is the first one in a terminal of this Emacs.  Signal a
`user-error' if SESSIONS is nil."
  (if (null (cdr sessions))
      (or (car sessions)
          (user-error "No CLI is connected; %s starts one, and %s shows how a \
running one connects"
                      (substitute-command-keys "\\[gemini-companion-run]")
                      (substitute-command-keys "\\[gemini-companion-status]")))
    (gemini-companion-choice-read
     "CLI" (mapcar (lambda (session)
                     (cons (gemini-companion-session-name session) session))
                   (seq-sort-by #'gemini-companion-session-terminal
                                (lambda (a b) (and a (not b)))
                                sessions))
     'gemini-companion-session #'gemini-companion-session--annotation)))

(defun gemini-companion-session--annotation (session)
  "Return the activity and the directory of SESSION, if known, as a text."
  (let ((directory (plist-get session :directory)))
    (string-join
     (delq nil (list (funcall gemini-companion-session-doing-function session)
                     (and directory
                          (not (plist-get session :remote))
                          (gemini-companion-names-shown
                           (abbreviate-file-name directory)))))
     ", ")))

;;;; Terminals

(defun gemini-companion-session-terminal (session)
  "Return the terminal buffer of SESSION in this Emacs, or nil.
For a CLI on a remote host, return nil if there are several terminals of that
host, or several CLIs on it."
  (if-let* ((remote (plist-get session :remote)))
      (gemini-companion-session--remote-terminal remote)
    (let* ((pid (plist-get session :pid))
           ;; Header lines call this; a look-up takes 0.1 ms per process.
           (buffer (gemini-companion-cache-get
                    (list 'terminal (plist-get session :id) pid)
                    (apply-partially #'gemini-companion-session--ancestor pid))))
      ;; After the CLI has exited, a shell may have the terminal.
      (and (buffer-live-p buffer) (eql 0 (signal-process pid 0)) buffer))))

(defun gemini-companion-session--remote-terminal (remote)
  "Return the only terminal buffer of the host REMOTE, or nil.
If there are several terminals, or several CLIs run on REMOTE, Emacs cannot
know which terminal belongs to which CLI."
  (let ((sessions (seq-filter (lambda (session)
                                (equal remote (plist-get session :remote)))
                              (gemini-companion-sessions)))
        (buffers (seq-filter
                  (lambda (buffer)
                    (let ((directory (buffer-local-value
                                      'gemini-companion-session-remote-directory
                                      buffer)))
                      (and directory
                           (string-prefix-p remote directory)
                           (process-live-p (get-buffer-process buffer)))))
                  (buffer-list))))
    (unless (or (cdr sessions) (cdr buffers))
      (car buffers))))

(defun gemini-companion-session--ancestor (pid)
  "Return the terminal buffer of the process PID or of an ancestor, or nil."
  (let (;; In a remote directory, Tramp would list remote processes.
        (default-directory "/")
        (buffers (mapcar (lambda (process)
                           (cons (process-id process) (process-buffer process)))
                         (seq-filter #'process-tty-name (process-list))))
        buffer)
    ;; In macOS, process 0 is its own parent.
    (while (and buffers pid (< 0 pid) (not (buffer-live-p buffer)))
      (setq buffer (alist-get pid buffers)
            pid (alist-get 'ppid (process-attributes pid))))
    buffer))

(defun gemini-companion-session-has-terminal-p (process &optional session)
  "Return non-nil if SESSION, or any CLI, controls the terminal of PROCESS.
Otherwise, a shell or another program controls it.  A terminal that Emacs has
started for a CLI is always controlled by that CLI."
  (or (process-get process 'gemini-companion-started)
      (seq-some
       (lambda (session)
         (and (eq (process-buffer process)
                  (gemini-companion-session-terminal session))
              ;; The process is in the foreground process group.
              (when-let* ((attributes (let ((default-directory "/"))
                                        (process-attributes
                                         (plist-get session :pid)))))
                (let-alist attributes
                  (eql .pgrp .tpgid)))))
       (if session (list session) (gemini-companion-sessions)))))

;;;; Life

(cl-defmethod gemini-companion-server-receive
  ((_method (eql 'sessions-update)) sessions)
  "Set the connected CLIs to SESSIONS, a list of plists."
  (let ((previous (gemini-companion-sessions)))
    (setq gemini-companion-session--all sessions)
    (run-hook-with-args 'gemini-companion-session-changed-functions previous)
    (gemini-companion-part-update-lighter)
    t))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'session)))
  "Remove all sessions."
  (gemini-companion-server-receive 'sessions-update nil))

(cl-defmethod gemini-companion-part-lighter ((_part (eql 'session)))
  "Return the number of the CLIs for the mode line, or a tooltip if it is 0."
  (if-let* ((sessions (gemini-companion-sessions)))
      (list (format ":%d" (length sessions)))
    '("" . "No CLI is connected")))

(provide 'gemini-companion-session)
;;; gemini-companion-session.el ends here

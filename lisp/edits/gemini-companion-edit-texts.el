;;; gemini-companion-edit-texts.el --- The texts before and after an edit  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The texts before and after an edit are compared as its CLI sees them: decoded
;; from UTF-8, or as the file is, with plain line ends and, if the CLI restores it,
;; without a byte order mark.  But what the CLI cannot decode is as the file has it,
;; so that each character that it replaces is a difference.
;;
;; The bytes of a file are kept before an edit, if they are not too many.  While
;; the edit is open, its texts are in two buffers, of which the user may change the
;; one with the proposal.  Whether a file has a text is asked here, too: a CLI
;; keeps line ends and a byte order mark, and may write another coding system.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-coding)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-format)
(require 'gemini-companion-hunk)
(require 'gemini-companion-names)
(require 'gemini-companion-replace)
(require 'gemini-companion-text)

;;;; State

(defconst gemini-companion-edit-texts--most-bytes (* 5 1024 1024)
  "Maximum size of the text of a file to keep.")

;;;; Coding systems

;; The bytes of a file that is not UTF-8 say little about its coding system, and
;; Qwen Code guesses one; its proposal shows which.
(defun gemini-companion-edit-texts--coding-of-cli (edit bytes text)
  "Return the coding system of the file of EDIT, as its CLI takes it.
BYTES are those of the file, which are not UTF-8, and TEXT is a text that
the CLI has made of them, such as its proposal."
  (if-let* ((codings (gemini-companion-client-codings
                      (gemini-companion-edit-client edit))))
      (gemini-companion-coding-guess
       bytes text codings
       (delq nil (list (gemini-companion-edit-texts--coding-of-buffer edit)
                       (gemini-companion-coding-declared
                        (gemini-companion-edit-file edit) bytes))))
    'utf-8-unix))

(defun gemini-companion-edit-texts--coding-of-buffer (edit)
  "Return the coding system of the buffer of EDIT's file, or nil if it has none."
  (when-let* ((buffer (gemini-companion-names-buffer
                       (gemini-companion-edit-file edit))))
    (gemini-companion-coding-of-buffer buffer)))

(defun gemini-companion-edit-texts-content (edit bytes text)
  "Return the `gemini-companion-content' of the file of EDIT when it has BYTES.
BYTES may be a symbol, see there.  TEXT is a text that the CLI has made of them,
such as its proposal."
  (let* ((undecoded (and (stringp bytes)
                         (not (gemini-companion-coding-utf-8-p bytes))))
         (coding (if undecoded
                     (gemini-companion-edit-texts--coding-of-cli edit bytes text)
                   'utf-8-unix)))
    (gemini-companion-content-make
     :bytes bytes
     :coding coding
     :shown-in (and undecoded
                    (eq 'utf-8-unix coding)
                    (or (gemini-companion-edit-texts--coding-of-buffer edit)
                        (gemini-companion-coding-of-file
                         (gemini-companion-edit-file edit) bytes))))))

(defun gemini-companion-edit-texts-with (edit bytes)
  "Return the content of the file of EDIT when it has BYTES.
It is read as before EDIT, see `gemini-companion-content-with'."
  (gemini-companion-content-with (gemini-companion-edit-content edit) bytes))

(defun gemini-companion-edit-texts-coding (edit)
  "Return the coding system of the file of EDIT, as its CLI decodes it."
  (gemini-companion-content-coding (gemini-companion-edit-content edit)))

(defun gemini-companion-edit-texts-shown-in (edit)
  "Return the coding system of displayed lines that the CLI of EDIT cannot read.
Return nil if there are no such lines."
  (gemini-companion-content-shown-in (gemini-companion-edit-content edit)))

(defun gemini-companion-edit-texts-visited-coding (edit)
  "Return the coding system of the current buffer, which visits the file of EDIT.
Return nil if the CLI reads the file in the same one."
  (let ((coding (gemini-companion-edit-texts-coding edit))
        (own (gemini-companion-coding-of-buffer (current-buffer))))
    (unless (or (null own)
                (eq (coding-system-base own) (coding-system-base coding))
                (and (eq 'utf-8-unix coding)
                     ;; A buffer with unsaved text may be in another coding system
                     ;; than the file.  The file of one without has lines of both, as
                     ;; after an undo of one hunk: the changes in its other hunks
                     ;; would count as edited by the user.
                     (or (buffer-modified-p)
                         (eq 'utf-8 (coding-system-type own)))))
      own)))

(defun gemini-companion-edit-texts-as-visited (edit text)
  "Return TEXT, of EDIT, as the current buffer has it, which visits its file.
The CLI may read the file in another coding system than Emacs."
  (if-let* ((own (gemini-companion-edit-texts-visited-coding edit)))
      (decode-coding-string
       (encode-coding-string text (gemini-companion-edit-texts-coding edit)) own)
    text))

(defun gemini-companion-edit-texts-from-visited (edit text)
  "Return TEXT of the current buffer as it is for the CLI of EDIT.
It is the reverse of `gemini-companion-edit-texts-as-visited'."
  (if-let* ((own (gemini-companion-edit-texts-visited-coding edit)))
      (decode-coding-string
       (encode-coding-string text own) (gemini-companion-edit-texts-coding edit))
    text))

;;;; The text before

(defun gemini-companion-edit-texts--plain (edit text)
  "Return TEXT as the CLI of EDIT sees it.
It has plain line ends; Qwen Code does not see the byte order mark, either."
  (let ((text (string-replace "\r\n" "\n" text)))
    (if (gemini-companion-client-codings
         (gemini-companion-edit-client edit))
        (string-remove-prefix "\uFEFF" text)
      text)))

(defun gemini-companion-edit-texts-keepable-p (file)
  "Return non-nil if FILE exists and its text can be kept."
  (when-let* (((not (gemini-companion-text-unreadable-reason file)))
              (attributes (gemini-companion-text-attributes file)))
    (<= (file-attribute-size attributes) gemini-companion-edit-texts--most-bytes)))

(defun gemini-companion-edit-texts-now (edit)
  "Return the content that the file of EDIT has now, or nil if it cannot be kept.
It is read as before EDIT; see `gemini-companion-content'."
  (let ((file (gemini-companion-edit-file edit)))
    (and (gemini-companion-edit-texts-keepable-p file)
         (ignore-error file-error
           (gemini-companion-edit-texts-with
            edit (gemini-companion-text-bytes file))))))

(defun gemini-companion-edit-texts-bytes (edit)
  "Return the bytes that the file of EDIT has now, or nil if they cannot be kept."
  (when-let* ((now (gemini-companion-edit-texts-now edit)))
    (gemini-companion-content-bytes now)))

(defun gemini-companion-edit-texts-read (edit)
  "Read the text of the file of EDIT, which is not written yet.
Record whether it has changed, and update the buffer of the original."
  (let ((buffer (gemini-companion-edit-original-buffer edit))
        (bytes (cond ((null (gemini-companion-text-attributes
                             (gemini-companion-edit-file edit)))
                      'none)
                     ((gemini-companion-edit-texts-bytes edit))
                     (t 'unknown))))
    (gemini-companion-edit-texts--note-change edit bytes)
    (setf (gemini-companion-edit-content edit)
          (gemini-companion-edit-texts-content
           edit bytes (gemini-companion-edit-proposed edit)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (gemini-companion-replace-text
         (gemini-companion-edit-texts--read-original edit))
        (set-buffer-modified-p nil)))))

(defun gemini-companion-edit-texts--note-change (edit bytes)
  "Record in the remarks on EDIT if its file was read before, and has changed.
BYTES is what it has now, see `gemini-companion-content'.  A file that is too
large to be kept is read again only if its time has changed, and so has its
text."
  (let ((previous (gemini-companion-content-bytes
                   (gemini-companion-edit-content edit))))
    (when (and previous
               (or (eq 'unknown bytes)
                   (not (equal previous bytes))))
      (cl-pushnew 'changed (gemini-companion-edit-remarks edit)))))

(defun gemini-companion-edit-texts-before (edit)
  "Return the text before EDIT, as its CLI sees it, or \"\" of a new file.
It must have been kept."
  (if (gemini-companion-edit-new-p edit)
      ""
    (gemini-companion-edit-texts--plain
     edit (gemini-companion-content-text-shown (gemini-companion-edit-content edit)))))

(defun gemini-companion-edit-texts--read-original (edit)
  "Return the text before EDIT, which is open, for the buffer of the original.
A file that is too large to be kept is read now, and its coding systems are
recorded."
  (if (gemini-companion-edit-known-p edit)
      (gemini-companion-edit-texts-before edit)
    (let ((content (gemini-companion-edit-texts-content
                    edit
                    (gemini-companion-text-bytes (gemini-companion-edit-file edit))
                    (gemini-companion-edit-proposed edit))))
      (setf (gemini-companion-edit-content edit)
            (gemini-companion-content-with content 'unknown))
      (gemini-companion-edit-texts--plain
       edit (gemini-companion-content-text-shown content)))))

;;;; The text after

(defun gemini-companion-edit-text (edit)
  "Return the text that EDIT has written, or that accepting it sends.
While it is open, that is the proposal as the user has edited it,
without the excluded hunks.  Once it is rejected, they are shown again,
as they may have comments."
  (or (gemini-companion-edit-after edit)
      ;; An excluded hunk may have bytes that no CLI can be sent.
      (gemini-companion-coding-sendable
       (funcall (if (eq 'rejected (gemini-companion-edit-decision edit))
                    #'gemini-companion-text-of-buffer
                  #'gemini-companion-hunk-remaining-text)
                (gemini-companion-edit-proposal-buffer edit)))))

(defun gemini-companion-edit-texts-edited-p (edit)
  "Return non-nil if the user has edited the proposal of EDIT."
  (let ((proposal (gemini-companion-edit-proposal-buffer edit)))
    (and (buffer-modified-p proposal)
         (not (equal (gemini-companion-edit-proposed edit)
                     (gemini-companion-text-of-buffer proposal))))))

(defun gemini-companion-edit-texts-emptied-p (edit)
  "Return non-nil if the user has left no text of the proposal of EDIT."
  (and (string-empty-p (gemini-companion-edit-text edit))
       (not (string-empty-p (gemini-companion-edit-proposed edit)))))

(defun gemini-companion-edit-texts-own-p (edit text)
  "Return non-nil if TEXT is neither empty nor the proposal of EDIT."
  (not (member text (list "" (gemini-companion-edit-proposed edit)))))

;;;; Buffers

(defun gemini-companion-edit-texts-make-buffer (edit name text)
  "Return a new buffer of EDIT with TEXT; NAME has a place for its file.
It visits no file, so that nothing locks, saves or formats it."
  (with-current-buffer (generate-new-buffer
                        (format name (gemini-companion-edit-name edit 'plain)))
    (setq default-directory
          (let ((file-name-handler-alist nil)
                (file (gemini-companion-edit-file edit)))
            (pcase (gemini-companion-names-of-copy file)
              (`(,name . ,there) (concat name (file-name-directory there)))
              ;; The nearest directory that exists.
              (_ (or (locate-dominating-file file #'file-directory-p) "/")))))
    (let ((inhibit-modification-hooks t)
          (buffer-undo-list t))
      (insert text))
    (set-buffer-modified-p nil)
    (goto-char (point-min))
    (gemini-companion-edit-adopt edit)
    (current-buffer)))

(defun gemini-companion-edit-texts-original (edit)
  "Return a read-only buffer with the text before EDIT, which is open."
  (or (gemini-companion-edit-original-buffer edit)
      (with-current-buffer (gemini-companion-edit-texts-make-buffer
                            edit "*gemini original: %s*"
                            (gemini-companion-edit-texts--read-original edit))
        (buffer-disable-undo)
        (setq buffer-read-only t)
        (setf (gemini-companion-edit-original-buffer edit) (current-buffer)))))

(defun gemini-companion-edit-texts-call (edit function)
  "Call FUNCTION with buffers of the texts before and after EDIT.
Those of an open edit are the ones of its review; others are temporary.
Signal a `user-error' if the text before EDIT was not kept."
  (if (gemini-companion-edit-open-p edit)
      (funcall function (gemini-companion-edit-texts-original edit)
               (gemini-companion-edit-proposal-buffer edit))
    (unless (gemini-companion-edit-known-p edit)
      (user-error "The previous text of %s was not kept"
                  (gemini-companion-edit-name edit)))
    (with-temp-buffer
      (insert (gemini-companion-edit-texts-before edit))
      (let ((old (current-buffer)))
        (with-temp-buffer
          (insert (gemini-companion-edit-texts--plain
                   edit (gemini-companion-edit-after edit)))
          (funcall function old (current-buffer)))))))

(defun gemini-companion-edit-texts-state (edit)
  "Return a value that differs, by `equal', after a change of EDIT's texts.
It is nil while the buffer of the original is still to be made."
  ;; The file may show later that the CLI has written another text.
  (or (gemini-companion-edit-after edit)
      (when-let* ((original (gemini-companion-edit-original-buffer edit)))
        (mapcar #'buffer-chars-modified-tick
                (list original (gemini-companion-edit-proposal-buffer edit))))))

;;;; The format of the file

(defun gemini-companion-edit-texts-record-format (edit)
  "Record the format in which the CLI of EDIT has just written its file."
  (setf (gemini-companion-edit-format edit)
        (when-let* ((now (gemini-companion-edit-texts-now edit)))
          (gemini-companion-content-format now))))

(defun gemini-companion-edit-texts-conversion (edit)
  "Return a text about how the CLI of EDIT has converted its file, or nil."
  (gemini-companion-format-conversion
   (gemini-companion-content-format (gemini-companion-edit-content edit))
   (gemini-companion-edit-format edit)))

;;;; The text in the file

(defun gemini-companion-edit-texts-comparable (text)
  "Return TEXT with plain line ends, and no byte order mark or last newline.
A CLI leaves these of a file as they are."
  (string-remove-suffix "\n" (gemini-companion-text-normalized text)))

(defun gemini-companion-edit-texts-same-p (a b)
  "Return non-nil if the text A may be B as a CLI has written it."
  (string= (gemini-companion-edit-texts-comparable a)
           (gemini-companion-edit-texts-comparable b)))

(defun gemini-companion-edit-texts-in-file-p (edit &optional text)
  "Return non-nil if the file of EDIT has changed to TEXT, as a CLI writes it.
By default, that is the text that the edit has written."
  (when-let* ((bytes (gemini-companion-edit-texts-bytes edit)))
    (gemini-companion-edit-texts-changed-to-p
     edit (or text (gemini-companion-edit-after edit)) bytes)))

(defun gemini-companion-edit-texts-changed-to-p (edit text bytes)
  "Return non-nil if BYTES are TEXT, but not what the file of EDIT had before."
  (and (not (equal bytes (gemini-companion-edit-bytes-before edit)))
       (or (gemini-companion-edit-texts--written-in-p
            text bytes (gemini-companion-edit-texts-coding edit))
           ;; Before a rewrite of the whole text, nothing showed in which coding
           ;; system the CLI had read the file; now its text does.
           (when-let* ((codings (gemini-companion-client-codings
                                 (gemini-companion-edit-client edit)))
                       ((not (gemini-companion-coding-utf-8-p bytes))))
             (gemini-companion-edit-texts--written-in-p
              text bytes
              (gemini-companion-coding-guess
               bytes text codings (list (gemini-companion-edit-texts-coding edit))))))))

(defun gemini-companion-edit-texts--written-in-p (text bytes coding)
  "Return non-nil if BYTES are TEXT as a CLI has written it in CODING."
  (let ((now (decode-coding-string bytes coding)))
    (if (memq coding '(utf-8-unix utf-16le-with-signature-unix
                                  utf-16be-with-signature-unix))
        (gemini-companion-edit-texts-same-p text now)
      (gemini-companion-edit-texts-same-p
       (gemini-companion-coding-as-written text coding)
       (gemini-companion-coding-as-written now coding)))))

(defun gemini-companion-edit-texts-correct-coding (edit text)
  "Record in which coding system the CLI of EDIT has written TEXT to its file."
  (when-let* ((codings (gemini-companion-client-codings
                        (gemini-companion-edit-client edit)))
              (bytes (ignore-error file-error
                       (gemini-companion-text-bytes
                        (gemini-companion-edit-file edit))))
              (coding (gemini-companion-edit-texts-coding edit))
              ((not (gemini-companion-edit-texts--written-in-p text bytes coding))))
    (setf (gemini-companion-content-coding (gemini-companion-edit-content edit))
          (gemini-companion-coding-guess bytes text codings (list coding))
          ;; The hunks are of lines that were decoded otherwise.
          (gemini-companion-edit-compared edit) nil)))

(provide 'gemini-companion-edit-texts)
;;; gemini-companion-edit-texts.el ends here

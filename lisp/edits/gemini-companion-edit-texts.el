;;; gemini-companion-edit-texts.el --- The texts before and after an edit  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read and compare the texts before and after an edit, with plain line ends, and
;; without a byte order mark if the CLI restores the mark.  A file that is not UTF-8 is
;; read as Emacs would visit it: what the CLI has replaced in its proposal is a
;; difference.
;;
;; The bytes of a file before an edit are kept, up to a size.  While the edit is open,
;; its texts are in two buffers, and the user may edit the proposal.  This file also
;; decides whether a file has the text of an edit: a CLI preserves line ends and a
;; byte order mark.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-coding)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-format)
(require 'gemini-companion-hunk)
(require 'gemini-companion-names)
(require 'gemini-companion-replace)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)

;;;; State

(defconst gemini-companion-edit-texts--most-bytes (* 5 1024 1024)
  "Maximum size of the text of a file to keep.")

;;;; Coding systems

(defun gemini-companion-edit-texts--coding-of-buffer (edit)
  "Return the coding system of the buffer that visits the file of EDIT, or nil."
  (when-let* ((buffer (gemini-companion-names-buffer
                       (gemini-companion-edit-file edit))))
    (gemini-companion-coding-of-buffer buffer)))

(defun gemini-companion-edit-texts-content (edit bytes &optional utf-8)
  "Return the `gemini-companion-content' of the file of EDIT when it has BYTES.
BYTES may be a symbol, see there.  If UTF-8 is non-nil, they are valid UTF-8."
  (gemini-companion-content-read
   bytes
   (and (stringp bytes)
        (not (or utf-8 (gemini-companion-coding-utf-8-p bytes)))
        (or (gemini-companion-edit-texts--coding-of-buffer edit)
            (gemini-companion-coding-of-file
             (gemini-companion-edit-file edit) bytes)))))

(defun gemini-companion-edit-texts-with (edit bytes)
  "Return the content of the file of EDIT when it has BYTES.
It is read as before EDIT, see `gemini-companion-content-with'."
  (gemini-companion-content-with (gemini-companion-edit-content edit) bytes))

(defun gemini-companion-edit-texts-coding (edit)
  "Return the coding system of the file of EDIT, as Emacs decodes it."
  (gemini-companion-content-coding (gemini-companion-edit-content edit)))

(defun gemini-companion-edit-texts-utf-8-p (edit)
  "Return non-nil if the file of EDIT was text in UTF-8, as far as is known.
Otherwise, it is answered as a whole, no changes of it are recorded, and only
its bytes are restored.  A file with a NUL is no text: Emacs does not decode it."
  (let ((bytes (gemini-companion-content-bytes (gemini-companion-edit-content edit))))
    (and (eq 'utf-8-unix (gemini-companion-edit-texts-coding edit))
         (or (not (stringp bytes))
             (and (not (string-search "\0" bytes))
                  (gemini-companion-coding-utf-8-p bytes))))))

(defun gemini-companion-edit-texts-converted-p (edit)
  "Return non-nil if EDIT is a conversion of its file to UTF-8 by its CLI."
  (not (or (eq 'utf-8-unix (gemini-companion-edit-texts-coding edit))
           (gemini-companion-client-keeps-coding-p
            (gemini-companion-edit-client edit)))))

;;;; The text before

(defun gemini-companion-edit-texts--plain (edit text)
  "Return TEXT as the CLI of EDIT sees it, with plain line ends.
For Qwen Code, remove the byte order mark."
  (let ((text (string-replace "\r\n" "\n" text)))
    (if (gemini-companion-client-keeps-coding-p (gemini-companion-edit-client edit))
        (string-remove-prefix "\uFEFF" text)
      text)))

(defun gemini-companion-edit-texts-keepable-p (file)
  "Return non-nil if FILE exists and its text can be kept."
  (when-let* (((not (gemini-companion-text-unreadable-reason file)))
              (attributes (gemini-companion-text-attributes file)))
    (<= (file-attribute-size attributes) gemini-companion-edit-texts--most-bytes)))

(defun gemini-companion-edit-texts-bytes (edit)
  "Return the bytes that the file of EDIT has now, or nil if they cannot be kept."
  (let ((file (gemini-companion-edit-file edit)))
    (and (gemini-companion-edit-texts-keepable-p file)
         (ignore-error file-error
           (gemini-companion-text-bytes file)))))

(defun gemini-companion-edit-texts-now (edit)
  "Return the content that the file of EDIT has now, or nil if it cannot be kept.
It is read as before EDIT; see `gemini-companion-content'."
  (when-let* ((bytes (gemini-companion-edit-texts-bytes edit)))
    (gemini-companion-edit-texts-with edit bytes)))

(defun gemini-companion-edit-texts-missing (edit)
  "Return the bytes before EDIT, whose file is missing: `none' or `unknown'.
They are unknown if a buffer has the text of the file, and no edit is known to
have deleted it: its CLI may have removed the file, and writes it again."
  (let* ((file (gemini-companion-edit-file edit))
         (last (car (gemini-companion-edit-others-of-file edit)))
         (buffer (gemini-companion-names-buffer file)))
    (if (and buffer
             (not (and last (gemini-companion-edit-deleted-modes last)))
             ;; Without a file, this is a number.
             (consp (with-current-buffer buffer
                      (visited-file-modtime))))
        'unknown
      'none)))

(defun gemini-companion-edit-texts-read (edit)
  "Read the file of EDIT, which its CLI has not written, as the text before.
Record whether the text has changed, and update the buffer of the original.
Return the text if it is known and UTF-8, or nil."
  (let* ((buffer (gemini-companion-edit-original-buffer edit))
         (missing (null (gemini-companion-text-attributes
                         (gemini-companion-edit-file edit))))
         (bytes (cond (missing (gemini-companion-edit-texts-missing edit))
                      ((gemini-companion-edit-texts-bytes edit))
                      (t 'unknown)))
         (text (and (stringp bytes) (gemini-companion-coding-utf-8 bytes)))
         (content (gemini-companion-edit-texts-content edit bytes text)))
    (gemini-companion-edit-texts--record-change edit content)
    (setf (gemini-companion-edit-content edit) content)
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (gemini-companion-replace-text
         (gemini-companion-edit-texts--read-original edit))
        (set-buffer-modified-p nil)))
    text))

(defun gemini-companion-edit-texts--record-change (edit content)
  "Record in the remarks on EDIT if its file was read before, and has changed.
CONTENT is what it has now.  A file that is too large to keep counts as changed,
as it is read again only if its time has changed."
  (let ((previous (gemini-companion-content-bytes
                   (gemini-companion-edit-content edit))))
    (when (and previous
               (not (and (equal previous (gemini-companion-content-bytes content))
                         (gemini-companion-content-known-p content))))
      (gemini-companion-edit-add-remark edit 'changed))))

(defun gemini-companion-edit-texts-before (edit)
  "Return the text before EDIT, with plain line ends, or \"\" for a new file.
The bytes must be known."
  (if (gemini-companion-edit-new-p edit)
      ""
    (gemini-companion-edit-texts--plain
     edit (gemini-companion-content-text (gemini-companion-edit-content edit)))))

(defun gemini-companion-edit-texts--read-original (edit)
  "Return the text before EDIT, which is open, for the buffer of the original.
If the file is too large to keep, read it now, and record its coding system."
  (cond
   ((gemini-companion-edit-known-p edit)
    (gemini-companion-edit-texts-before edit))
   ((null (gemini-companion-text-attributes (gemini-companion-edit-file edit))) "")
   (t
    (let ((content (gemini-companion-edit-texts-content
                    edit
                    (gemini-companion-text-bytes (gemini-companion-edit-file edit)))))
      (setf (gemini-companion-edit-content edit)
            (gemini-companion-content-with content 'unknown))
      (gemini-companion-edit-texts--plain
       edit (gemini-companion-content-text content))))))

;;;; The text after

(defun gemini-companion-edit-texts-set (edit before after)
  "Record that EDIT, which nobody has reviewed, has made AFTER of BEFORE.
BEFORE is a `gemini-companion-content', and AFTER a text."
  (setf (gemini-companion-edit-content edit) before
        (gemini-companion-edit-proposed edit) after)
  (gemini-companion-edit-texts-set-after edit after))

(defun gemini-companion-edit-texts-set-after (edit text)
  "Record that EDIT was answered by TEXT, or that TEXT was written."
  (setf (gemini-companion-edit-after edit) text))

(defun gemini-companion-edit-text (edit)
  "Return the text that EDIT has written, or that accepting EDIT sends.
While EDIT is open, that is the proposal as edited by the user, without the
excluded hunks.  Once EDIT is rejected, the text includes them, since they may
have comments."
  (or (gemini-companion-edit-after edit)
      ;; The user may have inserted bytes that cannot be sent to a CLI.
      (gemini-companion-coding-sendable
       (funcall (if (eq 'rejected (gemini-companion-edit-answer edit))
                    #'gemini-companion-text-of-buffer
                  #'gemini-companion-hunk-remaining-text)
                (gemini-companion-edit-proposal-buffer edit)))))

(defun gemini-companion-edit-texts-edited-p (edit)
  "Return non-nil if the user has edited the proposal of EDIT."
  (let ((proposal (gemini-companion-edit-proposal-buffer edit)))
    (and (buffer-modified-p proposal)
         (not (equal (gemini-companion-edit-proposed edit)
                     (gemini-companion-text-of-buffer proposal))))))

(defun gemini-companion-edit-texts-emptied-p (edit &optional text)
  "Return non-nil if the user has left no text of the proposal of EDIT.
TEXT is what that has now, if it is known."
  (and (string-empty-p (or text (gemini-companion-edit-text edit)))
       (not (string-empty-p (gemini-companion-edit-proposed edit)))))

(defun gemini-companion-edit-texts-by-user-p (edit text)
  "Return non-nil if TEXT is by the user: neither empty nor the proposal of EDIT."
  (not (member text (list "" (gemini-companion-edit-proposed edit)))))

;;;; Buffers

(defun gemini-companion-edit-texts-make-buffer (edit name text)
  "Return a new buffer of EDIT with TEXT, which visits no file.
So nothing locks, saves or formats it.  NAME is a format for the name of the
buffer, with the name of the file."
  (with-current-buffer (generate-new-buffer
                        (format name (gemini-companion-edit-name edit 'plain)))
    (setq default-directory
          (let ((file-name-handler-alist nil)
                (file (gemini-companion-edit-file edit)))
            (pcase (gemini-companion-names-of-copy file)
              (`(,name . ,there) (concat name (file-name-directory there)))
              ;; The directory of a new file may not exist yet.
              (_ (or (locate-dominating-file file #'file-directory-p) "/")))))
    (let ((inhibit-modification-hooks t)
          (buffer-undo-list t))
      (insert text))
    (set-buffer-modified-p nil)
    (goto-char (point-min))
    (gemini-companion-edit-adopt edit)
    (current-buffer)))

(defun gemini-companion-edit-texts-original (edit &optional text)
  "Return a read-only buffer with the text before EDIT, which is open.
TEXT is that text if the file has just been read, see
`gemini-companion-edit-texts-read'."
  (or (gemini-companion-edit-original-buffer edit)
      (with-current-buffer (gemini-companion-edit-texts-make-buffer
                            edit "*gemini original: %s*"
                            (if text
                                (gemini-companion-edit-texts--plain edit text)
                              (gemini-companion-edit-texts--read-original edit)))
        (buffer-disable-undo)
        (setq buffer-read-only t)
        (setf (gemini-companion-edit-original-buffer edit) (current-buffer)))))

(defun gemini-companion-edit-texts-discard-original (edit)
  "Kill the buffer with the text before EDIT, if there is one."
  (gemini-companion-edit-discard (gemini-companion-edit-original-buffer edit))
  (setf (gemini-companion-edit-original-buffer edit) nil))

(defun gemini-companion-edit-texts-call (edit function)
  "Call FUNCTION with buffers of the texts before and after EDIT.
If EDIT is open, they are the buffers of its review, otherwise temporary ones.
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
  "Return a value that differs, by `equal', once the texts of EDIT have changed.
Return nil until the buffer of the original exists."
  ;; The text after the edit is set again if the CLI turns out to have written another.
  (or (gemini-companion-edit-after edit)
      (when-let* ((original (gemini-companion-edit-original-buffer edit)))
        (mapcar #'buffer-chars-modified-tick
                (list original (gemini-companion-edit-proposal-buffer edit))))))

;;;; File format

(defun gemini-companion-edit-texts-record-format (edit)
  "Record the format that the file has now, which the CLI of EDIT has written."
  (setf (gemini-companion-edit-format edit)
        (when-let* ((now (gemini-companion-edit-texts-now edit)))
          (gemini-companion-content-format now))))

(defun gemini-companion-edit-texts-conversion (edit)
  "Return a phrase about how the CLI of EDIT has converted its file, or nil."
  (gemini-companion-format-conversion
   (gemini-companion-content-format (gemini-companion-edit-content edit))
   (gemini-companion-edit-format edit)))

;;;; File text

(defun gemini-companion-edit-texts--comparable (text)
  "Return TEXT with plain line ends, without byte order mark and last newline.
A CLI preserves these properties of a file."
  (string-remove-suffix "\n" (gemini-companion-text-normalized text)))

(defun gemini-companion-edit-texts-same-p (a b)
  "Return non-nil if the text A may be B as a CLI has written it."
  (string= (gemini-companion-edit-texts--comparable a)
           (gemini-companion-edit-texts--comparable b)))

(defun gemini-companion-edit-texts-in-file-p (edit &optional text)
  "Return non-nil if the file of EDIT has changed to TEXT, as a CLI writes it.
TEXT is by default the text that EDIT has written."
  (when-let* ((bytes (gemini-companion-edit-texts-bytes edit)))
    (gemini-companion-edit-texts-changed-to-p
     edit (or text (gemini-companion-edit-after edit)) bytes)))

(defun gemini-companion-edit-texts-changed-to-p (edit text bytes)
  "Return non-nil if BYTES are TEXT, but not what the file of EDIT had before."
  (and (not (equal bytes (gemini-companion-edit-bytes-before edit)))
       (gemini-companion-edit-texts-same-p
        text (gemini-companion-content-text
              (gemini-companion-edit-texts-with edit bytes)))))

(provide 'gemini-companion-edit-texts)
;;; gemini-companion-edit-texts.el ends here

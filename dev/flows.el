;;; flows.el --- What a flow of the package enters  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loads the sources of the package, all of them, so that each function and each
;; method counts its calls.  Accessors of structs, macros and closures are not counted.
;;
;; What a function does is read from its definition: it sets, reads or draws something
;; if one of the forms below stands in it.  So the figures are about right, and as long as
;; the same rule is used, comparable.

;;; Code:

(require 'bench)
(require 'cl-lib)
(require 'seq)
(require 'subr-x)

(declare-function gemini-companion-server-receive "gemini-companion-server")

(defconst flows--root
  (expand-file-name ".." (file-name-directory (or load-file-name buffer-file-name)))
  "The directory of the repository.")

(defvar flows--on nil
  "Non-nil while calls are counted.")

(defvar flows--calls (make-hash-table :test #'equal)
  "Table of the functions that were called, lists (FILE NAME PARAMETERS).")

(defvar flows--asked (make-hash-table :test #'equal)
  "The last call of each function that reads or draws.
It is a list (COUNT BUFFER POINT . ARGUMENTS), where COUNT is that of
`flows--sets' after the call.")

(defvar flows--again (make-hash-table :test #'equal)
  "Number of reads and draws that were asked for again, by (CALLER FUNCTION).
The arguments were equal, and nothing was set between.")

(defvar flows--upward (make-hash-table :test #'equal)
  "Calls into a later wing than any that was running, (CALLER WING).
Only those in which something was set or drawn.")

(defvar flows--sets 0
  "Number of calls of functions that set or draw something.")

(defvar flows--running nil
  "The functions of the package that run, as in `flows--calls', the last one first.")

(defvar flows--kinds (make-hash-table :test #'equal)
  "Table from functions, (FILE . NAME), to what they do, a list of symbols.")

(defvar flows--wings nil
  "The wings, names of directories, in their order.")

(defvar flows--wing-of (make-hash-table :test #'equal)
  "Table from files to the numbers of their wings.")

(defconst flows--beside '("cache" "garbage" "idle" "log")
  "Files that are on no path: what they set is for speed, or for a later reader.")

(defconst flows--places
  '( setq setf push pop cl-pushnew cl-incf cl-decf cl-callf cl-callf2 setq-default
     setq-local add-to-list)
  "Forms that set a variable or a place.")

(defconst flows--forms
  '((set puthash remhash clrhash write-region rename-file delete-file make-directory
         copy-file set-file-modes revert-buffer save-buffer
         process-send-string process-send-eof process-put make-process delete-process
         set-window-buffer set-window-start set-window-point select-window
         pop-to-buffer display-buffer delete-window kill-buffer
         set-buffer-modified-p restore-buffer-modified-p)
    (draw insert erase-buffer delete-region replace-match replace-buffer-contents
          make-overlay move-overlay overlay-put delete-overlay put-text-property
          add-text-properties set-text-properties remove-text-properties
          gemini-companion-replace-text)
    ;; What tells whether another program has written a file is none.
    (read insert-file-contents insert-file-contents-literally directory-files
          buffer-string buffer-substring buffer-substring-no-properties
          buffer-hash secure-hash compare-buffer-substrings
          call-process call-process-region process-file
          gemini-companion-record-look))
  "Functions by what a call of them does.")

(defun flows--does (form)
  "Return what is done by FORM, a list of `set', `draw' and `read'."
  (pcase form
    ((or (pred atom) `(,(or 'quote 'declare) . ,_)) nil)
    ;; A command in a keymap.
    (`(lambda ,_ (interactive . ,_) . ,_) nil)
    ;; What is written there is not on the screen.
    (`(,(or 'with-temp-buffer 'with-output-to-string) . ,body)
     (remq 'draw (flows--does body)))
    (`(,head . ,_)
     (let ((kinds (and (symbolp head)
                       (cl-loop for (kind . functions) in flows--forms
                                when (memq head functions) collect kind))))
       (when (and (memq head flows--places)
                  (seq-some (lambda (place)
                              (or (consp place)
                                  (and (symbolp place)
                                       (string-prefix-p "gemini-companion-"
                                                        (symbol-name place)))))
                            (if (memq head '(push cl-pushnew cl-callf cl-callf2))
                                (seq-take (cddr form) 1)
                              (seq-take (cdr form) 1))))
         (push 'set kinds))
       (while (consp form)
         (setq kinds (append (flows--does (pop form)) kinds)))
       (seq-uniq kinds)))))

(defun flows--read (file)
  "Record what the functions of FILE do."
  (with-temp-buffer
    (insert-file-contents file)
    (let ((form nil))
      (while (setq form (ignore-error end-of-file (read (current-buffer))))
        (when (memq (car-safe form) '(defun cl-defun cl-defmethod defsubst))
          (cl-callf append (gethash (cons file (nth 1 form)) flows--kinds)
            (flows--does (cddr form))))))))

(defun flows--short (file)
  "Return the name of FILE without its prefix."
  (string-remove-prefix "gemini-companion-" (file-name-base file)))

(defun flows--wing (file)
  "Return the number of the wing of FILE, or nil for the main file."
  (or (gethash file flows--wing-of)
      (puthash file
               (seq-position flows--wings
                             (file-name-nondirectory
                              (directory-file-name (file-name-directory file))))
               flows--wing-of)))

(defun flows--equal-p (call other)
  "Return non-nil if CALL and OTHER, as in `flows--asked', are equal."
  ;; What is drawn may have cycles.
  (and (length= call (length other))
       (cl-every (lambda (one other)
                   (or (eql one other)
                       (and (stringp one) (equal one other))))
                 call other)))

(defun flows--upward (function)
  "Return (CALLER WING) if FUNCTION is in a later wing than all that run, or nil."
  (when-let* ((wing (flows--wing (car function)))
              (wings (delq nil (mapcar #'flows--wing
                                       (mapcar #'car flows--running))))
              ((< (apply #'max wings) wing))
              ;; Others call for those who pass a function.
              (caller (or (seq-find (lambda (running)
                                      (< 1 (or (flows--wing (car running)) 0)))
                                    flows--running)
                          (car flows--running))))
    (list (nth 1 caller) (nth wing flows--wings))))

(defun flows--call (key function values)
  "Call FUNCTION with VALUES, and count that; for KEY, see `flows--calls'."
  (if (not flows--on)
      (apply function values)
    (puthash key t flows--calls)
    (let* ((kinds (gethash (cons (car key) (nth 1 key)) flows--kinds))
           (call (append (list (current-buffer) (point)) values))
           (last (gethash key flows--asked))
           (upward (flows--upward key))
           (sets flows--sets))
      (when (and (eq sets (car last))
                 (flows--equal-p call (cdr last)))
        (cl-incf (gethash (list (nth 1 (car flows--running)) (nth 1 key))
                          flows--again 0)))
      (prog1 (let ((flows--running (cons key flows--running)))
               (apply function values))
        (when (or (memq 'set kinds) (memq 'draw kinds))
          (cl-incf flows--sets))
        ;; A question is none.
        (when (and upward (< sets flows--sets))
          (puthash upward t flows--upward))
        (when (or (memq 'read kinds) (memq 'draw kinds))
          (puthash key (cons flows--sets call) flows--asked))))))

(defun flows--counted-method (arguments)
  "Return ARGUMENTS of `cl-generic-define-method' for a method that is counted."
  (pcase-let* ((`(,name ,qualifiers ,parameters ,kind ,function) arguments)
               (key (list load-file-name name parameters))
               (counted (lambda (function)
                          (lambda (&rest values)
                            (flows--call key function values)))))
    (list name qualifiers parameters kind
          (if (eq kind 'curried)
              (lambda (next) (funcall counted (funcall function next)))
            (funcall counted function)))))

(defun flows-load ()
  "Load all files of the package so that their functions are counted."
  (push flows--root load-path)
  ;; To read all forms interpreted takes six seconds.
  (mapc #'byte-compile '(flows--does flows--call))
  (advice-add 'cl-generic-define-method :filter-args #'flows--counted-method)
  (require 'gemini-companion)
  ;; Users do not load the file of invariants.
  (let ((files (seq-remove (apply-partially #'string-search "-invariants")
                           (file-expand-wildcards
                            (expand-file-name "lisp/*/gemini-companion-*.el"
                                              flows--root)))))
    (with-temp-buffer
      (insert-file-contents (expand-file-name "doc/design.org" flows--root))
      (re-search-forward "^\\* The wings of the Lisp$")
      (while (re-search-forward "^\\*\\*? \\([a-z-]+\\)$" nil t)
        (push (match-string 1) flows--wings))
      (setq flows--wings (nreverse flows--wings)))
    (dolist (file files)
      (flows--read file)
      (require (intern (file-name-base file))))
    (advice-remove 'cl-generic-define-method #'flows--counted-method)
    (dolist (file (cons (locate-library "gemini-companion") files))
      (pcase-dolist (`(,kind . ,name) (seq-filter #'consp
                                                  (cdr (assoc file load-history))))
        (when (and (eq kind 'defun)
                   (not (macrop name))
                   (not (cl--generic name))
                   ;; Accessors are.
                   (not (function-get name 'side-effect-free)))
          (let ((key (list file name)))
            (advice-add name :around
                        (lambda (function &rest values)
                          (flows--call key function values))))))))
  ;; As if CLIs were linked.
  (advice-add 'gemini-companion-install-extension-p :override #'always))

(defun flows-begin ()
  "Start to count."
  (mapc #'clrhash (list flows--calls flows--asked flows--again flows--upward))
  (setq flows--on t))

(defun flows-end ()
  "Return what was entered since `flows-begin'.
The value is a list of the number of files on the path, in which something is
set or drawn; of all files; of reads and draws that were asked for again; of
functions that call into a later wing; and of lists of the names of these three
but for all files."
  (setq flows--on nil)
  (let* ((called (hash-table-keys flows--calls))
         (setting (cl-loop for (file name) in called
                           for kinds = (gethash (cons file name) flows--kinds)
                           for short = (flows--short file)
                           when (and (or (memq 'set kinds) (memq 'draw kinds))
                                     (not (member short flows--beside)))
                           collect (cons short name)))
         (path (seq-group-by #'car setting))
         (again (cl-loop for function being the hash-keys of flows--again
                         using (hash-values count)
                         collect (format "%s -> %s %d" (car function) (cadr function)
                                         count)))
         (upward (mapcar (pcase-lambda (`(,caller ,wing)) (format "%s -> %s" caller wing))
                         (hash-table-keys flows--upward))))
    (list (length path)
          (length (seq-uniq (mapcar #'car called)))
          (apply #'+ (hash-table-values flows--again))
          (length (seq-uniq (mapcar #'car (hash-table-keys flows--upward))))
          (sort (mapcar (pcase-lambda (`(,short . ,functions))
                          (format "%s (%s)" short
                                  (mapconcat (lambda (function)
                                               (string-remove-prefix
                                                "gemini-companion-"
                                                (symbol-name (cdr function))))
                                             functions ", ")))
                        path)
                #'string<)
          (sort again #'string<)
          (sort upward #'string<))))

(defun flows-ask (kind facts &rest texts)
  "Let a hook of a linked CLI ask a question of KIND with FACTS and TEXTS."
  (funcall (apply #'gemini-companion-server-receive 'ask kind facts texts) #'ignore))

(defun flows-shown-p (text)
  "Return non-nil if a window displays a buffer with TEXT."
  (seq-some (lambda (window)
              (with-current-buffer (window-buffer window)
                (and (string-search text (buffer-string)) t)))
            (window-list nil 'no-minibuffer)))

(defun flows-marked-p ()
  "Return non-nil if the selected buffer has a mark of a change."
  (with-current-buffer (window-buffer)
    (seq-some (lambda (overlay) (overlay-get overlay 'gemini-companion-mark))
              (overlays-in (point-min) (1+ (point-max))))))

(defun flows-written-p ()
  "Return non-nil if Emacs has seen that each accepted edit was written."
  (not (seq-some #'gemini-companion-attribution-awaited-p (gemini-companion-edits))))

;;;; What a key computes and draws

(defconst flows--drawers
  '( gemini-companion-record-changes gemini-companion-marks--draw-here
     gemini-companion-overview-page-write)
  "Functions that compute the changes of a file, draw its marks, and the overview.")

(defvar flows--drawn nil
  "The names of those of `flows--drawers' that were called, the last one first.")

(defvar flows--last nil
  "Time when one of them was called, or a command has ended, or nil.")

(defun flows-draw-begin ()
  "Start to count what is computed and drawn."
  (setq flows--drawn nil
        flows--last nil)
  (add-hook 'post-command-hook #'flows--note)
  (dolist (name flows--drawers)
    (advice-add name :before (lambda (&rest _)
                               (push name flows--drawn)
                               (flows--note))
                '((name . flows-drawn)))))

(defun flows--note ()
  "Note that something has happened."
  (setq flows--last (float-time)))

(defun flows-quiet-p ()
  "Return non-nil if something has happened, and all timers are done with it."
  (and flows--last (< 0.7 (- (float-time) flows--last))))

(defun flows-draw-end ()
  "Return how often each of `flows--drawers' was called, a list."
  (remove-hook 'post-command-hook #'flows--note)
  (dolist (name flows--drawers)
    (advice-remove name 'flows-drawn))
  (mapcar (lambda (name) (seq-count (apply-partially #'eq name) flows--drawn))
          flows--drawers))

(provide 'flows)
;;; flows.el ends here

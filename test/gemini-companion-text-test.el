;;; gemini-companion-text-test.el --- Tests of texts in files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-ediff)
(require 'gemini-companion-hunk)
(require 'gemini-companion-list)
(require 'gemini-companion-page)
(require 'gemini-companion-replace)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-text)
(require 'gemini-companion-unified-draw)

(ert-deftest gemini-companion-text-is-the-same-when-it-comes-back ()
  (gemini-companion-test-with-directory '()
    (dolist (text (list "" "a\r\nb\rc\n" "\uFEFFé\0\u2028"
                        (string ?a #x3FFFE9 ?b)
                        "Content-Type: text/enriched\n\n<bold>b</bold>"))
      (dolist (file '("plain" "packed.gz"))
        (with-temp-buffer
          (insert "hidden\n" text)
          (narrow-to-region 1 2)
          (setq buffer-file-format '(text/enriched))
          (let ((after-insert-file-functions (list (lambda (_) (erase-buffer) 0)))
                (write-region-annotate-functions
                 (list (lambda (&rest _) '((1 . "more"))))))
            (gemini-companion-text-write file)
            (should (equal (concat "hidden\n" text)
                           (gemini-companion-text-read file)))))))))

;;;; Replacing

(defun gemini-companion-text-test-marks ()
  "Return an alist of the lines of this buffer and markers there.
These are at the beginning and the end of the line."
  (goto-char (point-min))
  (let (marks)
    (while (not (eobp))
      (push (list (buffer-substring (point) (line-end-position))
                  (copy-marker (point)) (copy-marker (line-end-position)))
            marks)
      (forward-line))
    marks))

(ert-deftest gemini-companion-text-is-replaced-where-it-differs ()
  (let ((seed (or (getenv "GC_SEED") (format "%s" (random)))))
    (random seed)
    (ert-info ((format "GC_SEED=%s" seed))
      (dotimes (_ 100)
        (with-temp-buffer
          (buffer-enable-undo)
          (let* ((lines (mapcar (lambda (number) (format "%d line" number))
                                (number-sequence 1 (random 30))))
                 (before (concat (string-join lines "\n")
                                 (and lines (seq-random-elt '("" "\n")))))
                 (after (concat (gemini-companion-test-edited-at-random before)
                                (seq-random-elt '("" "last"))))
                 (edited (split-string after "\n" t))
                 (diff-command (if (zerop (random 4)) "no-such" diff-command))
                 marks places)
            (insert before)
            (undo-boundary)
            (setq buffer-undo-list (seq-random-elt (list nil buffer-undo-list)))
            (setq marks (gemini-companion-text-test-marks))
            (narrow-to-region (point-min) (1+ (/ (point-max) 2)))
            (setq places (gemini-companion-replace-text after))
            (widen)
            (should (equal after (buffer-string)))
            (when (equal diff-command "diff")
              (pcase-dolist (`(,line ,beg ,end) marks)
                (when (and (member line edited)
                           ;; It may get another end.
                           (not (equal (last lines) (list line)))
                           (not (equal (last edited) (list line))))
                  (should (equal line (buffer-substring beg end)))))
              (dolist (line (gemini-companion-text-lines after))
                (goto-char (point-min))
                (search-forward line)
                (should (or (member line lines)
                            (seq-some (pcase-lambda (`(,beg . ,end))
                                        (<= beg (match-beginning 0)
                                            (match-end 0) end))
                                      places)))))
            (unless (equal before after)
              ;; In undo-tree, a boundary at the end is an endless loop.
              (should (car (last buffer-undo-list)))
              (primitive-undo 1 (cdr buffer-undo-list))
              (should (equal before (buffer-string))))))))))

(ert-deftest gemini-companion-text-is-replaced-at-many-places-at-once ()
  (with-temp-buffer
    (let ((calls 0))
      (dotimes (number 100000) (insert (format "%d words\n" number)))
      (add-hook 'after-change-functions (lambda (&rest _) (cl-incf calls)) nil t)
      (should (= 10000 (length (gemini-companion-replace-text
                                (string-replace "5 words\n" "5 words\nmore\n"
                                                (buffer-string))))))
      (should (= 1 calls)))))

;; The judge knows only the texts.  Before, between and after two blocks of lines
;; that stay, and that are so long that diff finds them, lines are edited.

(defun gemini-companion-text-test-block (name)
  "Return lines that stay, NAME in the midst."
  (let ((lines (mapconcat (lambda (n) (format "\303\251 é %s %d\n" name n))
                          (number-sequence 1 15) "")))
    (concat lines name "\n" lines)))

(defun gemini-companion-text-test-random-line ()
  "Return a line of pieces whose bytes may be those of others.
It may have a line end, as a piece, and has none at its end."
  (mapconcat (lambda (_)
               (seq-random-elt
                (list "a" "b " "é" "\u4e2d" "\U0001F600" "\0" "\r" "\\" "\"" "\\351"
                      "e\u0301" "\u2028" "\uFEFF" "\uFFFD"
                      ;; Beyond Unicode, and a surrogate.
                      (string #x110000) (string #x3fff7f) (string #xd83d)
                      ;; The bytes of é and of the character after the quote.
                      (string-to-multibyte "\351") (string-to-multibyte "\303\251")
                      (string-to-multibyte "\344\270\255")
                      (string-to-multibyte "\303"))))
             (make-list (random 5) nil) ""))

(defun gemini-companion-text-test-random-lines (most)
  "Return a text of MOST lines at most."
  (mapconcat (lambda (_)
               (concat (gemini-companion-text-test-random-line)
                       (seq-random-elt '("\n" "\n" "\r\n"))))
             (make-list (random (1+ most)) nil) ""))

(defun gemini-companion-text-test-random-edit (text)
  "Return TEXT with a few lines replaced, deleted or added, or none.
An added line may be one that is there, in other characters with its bytes."
  (mapconcat
   (lambda (line)
     (pcase (random 12)
       (0 "")
       (1 (concat (gemini-companion-text-test-random-line) "\n"))
       (2 (concat line (gemini-companion-text-test-random-line) "\n"))
       (3 (decode-coding-string (encode-coding-string line 'utf-8-emacs-unix)
                                'utf-8-emacs-unix))
       (_ line)))
   (split-string text "^" t) ""))

(defun gemini-companion-text-test-random-texts (count)
  "Return COUNT texts, of which each one but the first is edited from that.
The two blocks are in all."
  (let ((parts (list (gemini-companion-text-test-random-lines 6) (gemini-companion-text-test-block "FIRST")
                     (gemini-companion-text-test-random-lines 6)
                     (gemini-companion-text-test-block "SECOND")
                     (concat (gemini-companion-text-test-random-lines 6)
                             (gemini-companion-text-test-random-line)))))
    (cl-loop for n below count
             collect (mapconcat
                      (lambda (part)
                        (if (or (zerop n) (string-match-p "FIRST\\|SECOND" part))
                            part
                          (gemini-companion-text-test-random-edit part)))
                      parts ""))))

(defmacro gemini-companion-text-test-at-random (times &rest body)
  "Evaluate BODY TIMES times, with a seed that a failure names."
  (declare (indent 1) (debug t))
  `(let ((seed (or (getenv "GC_SEED") (format "%s" (random)))))
     (ert-info ((format "GC_SEED=%s" seed))
       (random seed)
       (dotimes (_ ,times)
         ,@body))))

(ert-deftest gemini-companion-text-is-replaced-to-the-character ()
  (gemini-companion-text-test-at-random 300
    (pcase-let ((`(,before ,after) (gemini-companion-text-test-random-texts 2))
                (bytes-p (zerop (random 4))))
      (with-temp-buffer
        (when bytes-p
          (set-buffer-multibyte nil)
          (setq before (gemini-companion-text-utf-8 before)))
        (buffer-enable-undo)
        (insert before)
        (let ((expected (if bytes-p (gemini-companion-text-utf-8 after) after))
              places)
          (dolist (name '("FIRST" "SECOND"))
            (goto-char (point-min))
            (re-search-forward (format "^%s$" name))
            (push (list name (copy-marker (match-beginning 0)) (point-marker)
                        (make-overlay (match-beginning 0) (point)))
                  places))
          (undo-boundary)
          (ert-info ((format "%S to %S" before after))
            (gemini-companion-replace-text after)
            (should (equal expected (buffer-string)))
            (pcase-dolist (`(,name ,beg ,end ,overlay) places)
              (should (equal name (buffer-substring beg end)))
              (should (equal name (buffer-substring (overlay-start overlay)
                                                    (overlay-end overlay)))))
            (unless (equal before expected)
              (primitive-undo 1 (cdr buffer-undo-list))
              (should (equal before (buffer-string))))))))))

(ert-deftest gemini-companion-text-differs-where-its-characters-do ()
  (gemini-companion-text-test-at-random 200
    (let* ((texts (gemini-companion-text-test-random-texts 2))
           (hunks (gemini-companion-text-diff texts))
           (lines (mapcar (lambda (text) (split-string text "^" t)) texts))
           (new (car lines)))
      (ert-info ((format "%S" texts))
        (pcase-dolist (`(,old ,old-count ,line ,count) (reverse hunks))
          (setq new (append (seq-take new (1- old))
                            (seq-take (nthcdr (1- line) (cadr lines)) count)
                            (nthcdr (+ -1 old old-count) new))))
        (should (equal (cadr texts) (string-join new)))
        (should (eq (null hunks) (apply #'equal texts)))))))

(ert-deftest gemini-companion-text-is-merged-to-the-character ()
  (gemini-companion-text-test-at-random 100
    (pcase-let* ((`(,base ,mine ,theirs)
                  (mapcar (lambda (text) (split-string text "^SECOND\n"))
                          (gemini-companion-text-test-random-texts 3)))
                 (join (lambda (beginning end)
                         (concat (car beginning) "SECOND\n" (cadr end)))))
      (ert-info ((format "%S" (list base mine theirs)))
        (should (equal (cons nil (funcall join mine theirs))
                       (gemini-companion-text-merged
                        (funcall join mine base) (funcall join base base)
                        (funcall join base theirs))))))))

(ert-deftest gemini-companion-text-conflict-names-the-line ()
  (let ((raw (string-to-multibyte "\303\251")))
    (pcase-dolist (`(,mine ,base ,theirs)
                   `(("é\nb\nmine\n" "é\nb\nc\n" "é\nb\ntheirs\n")
                     (,(concat raw "\nb\nmine\n") ,(concat raw "\nb\nc\n")
                      ,(concat raw "\nb\ntheirs\n"))
                     ("\303\251\nb\nmine\n" "\303\251\nb\nc\n"
                      "\303\251\nb\ntheirs\n")
                     (,(concat "é" raw "\nb\n" raw "\n") ,(concat "é" raw "\nb\nc\n")
                      ,(concat "é" raw "\nb\né\n"))))
      (let ((merged (gemini-companion-text-merged mine base theirs "1" "2" "3")))
        (should (equal 3 (car merged)))
        (should (equal (string-to-multibyte
                        (concat (substring mine 0 (string-search "b\n" mine))
                               "b\n<<<<<<< 1\n"
                               (substring mine (+ 2 (string-search "b\n" mine)))
                               "||||||| 2\nc\n=======\n"
                               (substring theirs (+ 2 (string-search "b\n" theirs)))
                                ">>>>>>> 3\n"))
                       (cdr merged)))))))

;;;; Names

;; Where case counts, a link is what a volume that ignores case has.

(ert-deftest gemini-companion-text-knows-a-file-in-spite-of-case ()
  (gemini-companion-test-with-directory nil
    (make-directory "Other")
    (make-symbolic-link "Project" "project")
    (gemini-companion-test-write "Project/a" "")
    (gemini-companion-test-write "other/a" "")
    (pcase-dolist
        (`(,predicate . ,cases)
         '((gemini-companion-text-same-file-p
            ("Project/a" "Project/a" t) ("Project/a" "project/a" t)
            ("other/a" "Other/a" nil) ("other/a" "Project/a" nil)
            ("new" "new" t) ("new" "New" nil))
           (gemini-companion-text-in-directory-p
            ("Project/a" "Project" t) ("Project/a" "project" t)
            ("project/" "Project" t) ("Project/new" "project" t)
            ("other/a" "Other" nil) ("Projects/a" "Project" nil)
            ("Project/a" "other" nil))))
      (pcase-dolist (`(,file ,other ,expected) cases)
        (ert-info ((format "%s %s %s" predicate file other))
          (should (eq expected (and (funcall predicate (expand-file-name file)
                                             (expand-file-name other))
                                    t))))))))

(ert-deftest gemini-companion-text-reads-no-pipe-and-no-device ()
  (gemini-companion-test-with-directory '(("a" "text"))
    (call-process "mkfifo" nil nil nil "pipe")
    (make-symbolic-link "/dev/zero" "zero")
    (make-symbolic-link "loop" "loop")
    (make-symbolic-link "a" "link")
    (make-symbolic-link "new" "dangling")
    (dolist (file '("a" "link" "new" "dangling"))
      (should-not (gemini-companion-text-unreadable-reason
                   (expand-file-name file))))
    (should (equal "text" (gemini-companion-text-read "link")))
    (dolist (file '("pipe" "zero" "loop" "." "/dev/tty"
                    "/ssh:nowhere.invalid:/x"))
      (should (stringp (gemini-companion-text-unreadable-reason
                        (expand-file-name file)))))
    (dolist (file '("pipe" "zero" "loop" "." "/dev/tty" "new"))
      (should-error (gemini-companion-text-read file) :type 'file-error))
    ;; The superuser may open it; to read it does not end.
    (should (equal "" (condition-case nil
                          (gemini-companion-text-read "/proc/kmsg")
                        (file-error ""))))))

(ert-deftest gemini-companion-text-is-read-as-utf-8 ()
  (gemini-companion-test-with-directory '()
    (dolist (piece '("\r\n" "\0" "\177" "\200" "\277" "\300\200" "\301\277"
                     "\303\251" "\340\200\200" "\340\240\200" "\342\200"
                     "\355\237\277" "\355\240\200" "\360\217\277\277"
                     "\360\237\230\200" "\364\217\277\277"
                     "\364\220\200\200" "\370\210\200\200\200" "\376" "\377"))
      (dolist (bytes (list piece (concat "a" piece) (concat piece "a")
                           (concat "\303\251" piece "\303\251")
                           (concat piece piece "\n")))
        (ert-info ((format "%S" bytes))
          (gemini-companion-test-write "bytes" bytes)
          (let ((text (gemini-companion-text-read "bytes")))
            (should (equal (decode-coding-string bytes 'utf-8-unix) text))
            (gemini-companion-text-write "again" text)
            (should (equal (encode-coding-string text 'utf-8-emacs-unix)
                           (gemini-companion-text-bytes "again")))))))))

(ert-deftest gemini-companion-text-rewrites-only-what-it-knows ()
  (gemini-companion-test-with-directory '(("a" "\303\251\n") ("b" "other\n"))
    (gemini-companion-text-rewrite "a" "\303\251\n" "ü\n")
    (should (equal "\303\274\n" (gemini-companion-text-bytes "a")))
    ;; Replaced by another program.
    (rename-file "b" "a" t)
    (should-error (gemini-companion-text-rewrite "a" "\303\274\n" "new\n")
                  :type 'file-error)
    (should (equal "other\n" (gemini-companion-text-bytes "a")))))

(ert-deftest gemini-companion-page-keeps-point-and-mark-at-their-lines ()
  (with-temp-buffer
    (pcase-dolist (`(,text ,place)
                   `(("a\nsame\nb\nsame\nrest\nrest\n" "b\nsa|me\n")
                     ("new\na\nmore\nsame\nb\nsame\nrest\nrest\n" "b\nsa|me\n")
                     ("a\nsame\nb\nsafe\nmore\n" "b\nsa|fe\n")
                     (,(propertize "a\nsame\nb\n" 'face 'bold) "b\n|")
                     ("a\n" "a\n|")))
      (gemini-companion-page-replace text)
      (when (= 1 (point))
        (search-forward "b\nsa")
        (set-mark (point)))
      (should (equal-including-properties text (buffer-string)))
      (save-excursion
        (insert "|")
        (should (string-search place (buffer-string)))
        (delete-char -1)
        (should (= (point) (mark t)))))))

;;;; The model

(defvar gemini-companion-hunk-test-marks nil
  "The excluded hunks of the model.")

(defvar gemini-companion-hunk-test-text nil
  "The proposal of the model, as edited.")

(defun gemini-companion-hunk-test-expected ()
  "Return the text that is to be sent."
  (let ((text gemini-companion-hunk-test-text))
    ;; From the end; at one place an empty one comes first.
    (pcase-dolist (`(,beg ,proposed ,original)
                   (sort (copy-sequence gemini-companion-hunk-test-marks)
                         (lambda (one other)
                           (if (= (car one) (car other))
                               (> (length (cadr one)) (length (cadr other)))
                             (> (car one) (car other))))))
      (setq text (concat (substring text 0 beg) original
                         (substring text (+ beg (length proposed))))))
    text))

(defun gemini-companion-hunk-test-change (beg count insert)
  "Replace COUNT characters of the model from BEG on by INSERT.
Drop those that do not consist of whole lines as before."
  (let ((text (concat (substring gemini-companion-hunk-test-text 0 beg)
                      insert
                      (substring gemini-companion-hunk-test-text
                                 (+ beg count))))
        marks)
    (pcase-dolist (`(,from ,proposed ,original)
                   gemini-companion-hunk-test-marks)
      (let* ((length (length proposed))
             (at (cond ((< (+ beg count) from)
                        (+ from (- (length insert) count)))
                       ((and (< beg from) (<= from (+ beg count)))
                        beg)
                       ((and (= beg from) (< 0 length))
                        (+ from (length insert)))
                       (t from)))
             (end (+ at length))
             (line-p (lambda (position)
                       (or (zerop position)
                           (eq ?\n (aref text (1- position)))))))
        (when (and (<= end (length text))
                   (string= proposed (substring text at end))
                   ;; Text that was deleted is another one.
                   (or (zerop length) (<= (+ beg count) from)
                       (<= (+ from length) beg))
                   (funcall line-p at)
                   (or (= end (length text))
                       (and (funcall line-p end)
                            (or (string-empty-p original)
                                (string-suffix-p "\n" original)))))
          (push (list at proposed original) marks))))
    (setq gemini-companion-hunk-test-text text
          gemini-companion-hunk-test-marks marks)))

(defun gemini-companion-hunk-test-lines (text line count)
  "Return where COUNT lines of TEXT from LINE on begin, and these lines."
  (with-temp-buffer
    (insert text)
    (let ((beg (gemini-companion-hunk-line line)))
      (list (1- beg)
            (buffer-substring beg (gemini-companion-hunk-line
                                   (+ line count)))))))

(defun gemini-companion-hunk-test-mark (hunk original)
  "Return a mark of HUNK in the model, where the file is ORIGINAL."
  (append (gemini-companion-hunk-test-lines gemini-companion-hunk-test-text
                                            (gemini-companion-hunk-new hunk)
                                            (gemini-companion-hunk-new-count hunk))
          (cdr (gemini-companion-hunk-test-lines
                original (gemini-companion-hunk-old hunk)
                (gemini-companion-hunk-old-count hunk)))))

(defun gemini-companion-hunk-test-compared (hunks original)
  "Keep only those in the model that are among HUNKS of ORIGINAL."
  (let ((all (mapcar (lambda (hunk)
                       (gemini-companion-hunk-test-mark hunk original))
                     hunks)))
    (setq gemini-companion-hunk-test-marks
          (seq-filter (lambda (mark) (member mark all))
                      gemini-companion-hunk-test-marks))))

;;;; What is shown

(defun gemini-companion-hunk-test-shown ()
  "Return the lines to be written by the unified diff in this buffer."
  (delq nil (mapcar (lambda (line)
                      (and (string-match "\\`\\(?:[ +]\\|\\*[+ ]\\|x-\\)" line)
                           (substring line (match-end 0))))
                    (gemini-companion-test-diff))))

(defun gemini-companion-hunk-test-compare (diff)
  "Compare DIFF again in its view, and in the model."
  (with-current-buffer (gemini-companion-review-main-buffer diff)
    (if (derived-mode-p 'gemini-companion-unified-mode)
        (revert-buffer)
      (call-interactively (key-binding "g"))))
  (gemini-companion-hunk-test-compared
   (gemini-companion-edit-hunks diff)
   (gemini-companion-test-file-text (gemini-companion-edit-file diff))))

(defun gemini-companion-hunk-test-check (diff)
  "Assert that what is shown and sent of DIFF equals the model.
The hunks were just compared."
  (let ((text (gemini-companion-hunk-test-expected))
        (buffer (gemini-companion-review-main-buffer diff)))
    (should (equal text (gemini-companion-edit-text diff)))
    (should (equal (length gemini-companion-hunk-test-marks)
                   (nth 1 (or (gemini-companion-edit-counts diff) '(0 0)))))
    (with-current-buffer buffer
      (if (derived-mode-p 'gemini-companion-unified-mode)
          (when (gemini-companion-edit-hunks diff)
            (save-excursion
              (while (when-let* ((fold (text-property-not-all
                                        (point-min) (point-max)
                                        'gemini-companion-fold nil)))
                       (goto-char fold)
                       (gemini-companion-unified-toggle-fold)
                       t)))
            (should (equal (gemini-companion-text-lines text)
                           (gemini-companion-hunk-test-shown))))
        (let ((excluded 0))
          (dotimes (n ediff-number-of-differences)
            (ediff-jump-to-difference (1+ n))
            (when (string-search "excluded" (buffer-string))
              (should (gemini-companion-review-excluded-p))
              (setq excluded (1+ excluded))))
          (should (equal (length gemini-companion-hunk-test-marks)
                         excluded)))))))

;;;; The walk

(defun gemini-companion-hunk-test-random (lines)
  "Return a text of LINES at most, few of which differ."
  (concat (mapconcat (lambda (_) (seq-random-elt '("a" "b" "" "d d" "ü\U0001F600\u2028" "-x"
                                                   "@@ -1 +1 @@" "\\ No" "--- a")))
                     (make-list (random (1+ lines)) nil) "\n")
          (seq-random-elt '("" "\n"))))

(defun gemini-companion-hunk-test-mutate (text)
  "Return TEXT after some random edits of lines."
  (dotimes (_ (1+ (random 4)))
    (let* ((beg (random (1+ (length text))))
           (end (min (length text) (+ beg (random 5)))))
      (setq text (concat (substring text 0 beg)
                         (gemini-companion-hunk-test-random 2)
                         (substring text end)))))
  text)

(defun gemini-companion-hunk-test-edit (diff edit)
  "Call EDIT in the proposal of DIFF, and change the model in the same way."
  (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
    (undo-boundary)
    (let ((change (lambda (beg end count)
                    (gemini-companion-hunk-test-change
                     (1- beg) count
                     (buffer-substring-no-properties beg end)))))
      (unwind-protect
          (progn (add-hook 'after-change-functions change nil t)
                 (funcall edit))
        (remove-hook 'after-change-functions change t)))))

(defun gemini-companion-hunk-test-go (diff)
  "Go somewhere in the view of DIFF."
  (let ((n (random 6)))
    (set-buffer (gemini-companion-review-main-buffer diff))
    (cond ((derived-mode-p 'gemini-companion-unified-mode)
           (goto-char (point-min))
           (dotimes (_ n)
             (ignore-error user-error (gemini-companion-review-next-hunk))))
          ((zerop n)
           (set-buffer (gemini-companion-edit-proposal-buffer diff))
           (goto-char (1+ (random (1+ (buffer-size))))))
          (t (ignore-errors (ediff-jump-to-difference n))))))

(defun gemini-companion-hunk-test-toggle (diff)
  "Toggle a hunk of DIFF by its key, here and in the model, and return it.
One hunk must change, the one at point."
  (save-current-buffer
    (gemini-companion-hunk-test-go diff)
    (let* ((done (condition-case nil
                     (progn (gemini-companion-review-toggle-hunk) t)
                   (user-error nil)))
           (hunks (with-temp-buffer
                    (insert-file-contents (gemini-companion-edit-file diff))
                    (gemini-companion-hunk-find
                     (current-buffer)
                     (gemini-companion-edit-proposal-buffer diff))))
           (file (gemini-companion-test-file-text
                  (gemini-companion-edit-file diff)))
           (marks (mapcar (lambda (hunk)
                            (gemini-companion-hunk-test-mark hunk file))
                          (gemini-companion-hunk-excluded
                           (gemini-companion-edit-proposal-buffer diff))))
           (before (gemini-companion-hunk-test-compared hunks file)))
      (should (equal hunks (gemini-companion-edit-hunks diff)))
      (should (eql (if done 1 0)
                   (+ (length (seq-difference marks before))
                      (length (seq-difference before marks)))))
      (when done
        (should (or (gemini-companion-review-excluded-p)
                    (< (length marks) (length before)))))
      (setq gemini-companion-hunk-test-marks marks))))

(defun gemini-companion-hunk-test-step (diff file)
  "Do something at random in the review of DIFF, of FILE; return what was done."
  (let* ((length (length gemini-companion-hunk-test-text))
         (step (seq-random-elt '(toggle toggle toggle edit edit undo switch
                                        compare file))))
    (pcase step
      ('toggle (list step (gemini-companion-hunk-test-toggle diff)))
      ('edit
       (let* ((beg (random (1+ length)))
              (count (random (min 8 (1+ (- length beg)))))
              (text (gemini-companion-hunk-test-random 2)))
         (gemini-companion-hunk-test-edit
          diff (lambda ()
                 (delete-region (1+ beg) (+ 1 beg count))
                 (goto-char (1+ beg))
                 (insert text)))
         (list step beg count text)))
      ('undo
       (gemini-companion-hunk-test-edit
        diff (lambda ()
               (let ((last-command nil))
                 (ignore-error user-error (undo)))))
       step)
      ('file
       (let ((text (gemini-companion-hunk-test-mutate
                    (gemini-companion-test-file-text file))))
         (unless (string= text (gemini-companion-edit-proposed diff))
           (gemini-companion-test-rewrite file text)
           (gemini-companion-test-in-the-end
             (equal text (gemini-companion-test-text "*gemini original: a*")))
           (gemini-companion-hunk-test-compare diff)
           (list step text))))
      (_
       (when (eq step 'switch)
         (with-current-buffer (gemini-companion-review-main-buffer diff)
           (gemini-companion-review-switch-view)))
       (gemini-companion-hunk-test-compare diff)
       step))))

(defun gemini-companion-hunk-test-walk (old new)
  "Go at random through a review of an edit from OLD to NEW."
  (gemini-companion-test-with-reviews `(("a" ,old))
    (let* ((gemini-companion-review-view (seq-random-elt '(ediff diff)))
           (diff (gemini-companion-test-show "a" new))
           (gemini-companion-hunk-test-text new)
           (gemini-companion-hunk-test-marks nil)
           steps)
      (cl-letf (((symbol-function 'y-or-n-p) #'always))
        (dotimes (_ 8)
          (push (gemini-companion-hunk-test-step diff "a") steps)
          (ert-info ((format "%S" (reverse steps)))
            ;; Nothing but the user has edited it.
            (should (equal gemini-companion-hunk-test-text
                           (with-current-buffer
                               (gemini-companion-edit-proposal-buffer diff)
                             (buffer-string))))
            (should (equal (gemini-companion-hunk-test-expected)
                           (gemini-companion-edit-text diff)))
            ;; An edit need not be followed by a comparison.
            (when (memq (or (car-safe (car steps)) (car steps))
                        '(compare switch file))
              (gemini-companion-hunk-test-check diff))))))))

(ert-deftest gemini-companion-hunk-what-is-shown-is-what-is-sent ()
  (dotimes (seed 60)
    (random (format "marks %d" seed))
    (let* ((old (gemini-companion-hunk-test-random 15))
           (new (gemini-companion-hunk-test-mutate old)))
      (unless (string= old new)
        (ert-info ((format "seed %d, %S to %S: " seed old new))
          (gemini-companion-hunk-test-walk old new))))))

;;; gemini-companion-text-test.el ends here

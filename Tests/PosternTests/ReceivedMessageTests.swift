// A message from a file for `postern explain`, in the form in which Postfix would pass it to the
// milter.

import TestSupport
import Testing

@testable import Relay

@Suite(.blocking) struct ReceivedMessageTests {
    @Test(arguments: [
        // A From line of a mailbox file at the beginning becomes a field; in the middle it ends the
        // header section.
        (
            "From anna@inbox.example Tue Nov  3\nSubject: x\n\nbody\n",
            "X-Mailbox-Line: From anna@inbox.example Tue Nov  3\r\nSubject: x\r\n\r\nbody\r\n"
        ),
        (">From a Tue\nSubject: x\n\n", "X-Mailbox-Line: >From a Tue\r\nSubject: x\r\n\r\n"),
        (
            "Subject: x\nFrom anna Tue\nTo: y\n\nbody\n",
            "Subject: x\r\n\r\nFrom anna Tue\r\nTo: y\r\n\r\nbody\r\n"
        ),
        // The same for every other line that is not a field.
        ("Subject: x\nno field\n\nbody\n", "Subject: x\r\n\r\nno field\r\n\r\nbody\r\n"),
        ("Subject: x\nbad name: y\n\n", "Subject: x\r\n\r\nbad name: y\r\n\r\n"),
        ("Subject: x\n: y\n", "Subject: x\r\n\r\n: y\r\n"),
        (" folded: first\n\n", "\r\n folded: first\r\n\r\n"),
        ("\u{FEFF}Subject: x\n", "\r\n\u{FEFF}Subject: x\r\n"),
        // Folded lines and obsolete spaces do not end it.
        (
            "Subject : x\n\ty:z\n more\n\nno field\n",
            "Subject : x\r\n\ty:z\r\n more\r\n\r\nno field\r\n"
        ),
        ("", ""), ("\n", "\r\n"), ("x", "\r\nx"), ("a:", "a:"),
    ])
    func message_asPostfixReceivesIt_hasItsLineEnds(file: String, received: String) {
        #expect(String(decoding: LineEnds.received(Array(file.utf8)), as: UTF8.self) == received)
    }
}

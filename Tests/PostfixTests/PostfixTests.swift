// Milter on a real Postfix: replies at each stage.

import Foundation
import PostfixHarness
import Testing

@Suite(needsPostfix) struct FirstTests {
    @Test func aMessagePasses() throws {
        let rig = try Rig("insert 1 X-Below  yes\ninsert 0 X-Above  top\nadd X-Last  end\n")
        defer { rig.stop() }
        let message = try rig.relay(mail(["From: a@out.test", "Subject: hello", "X-A: 1\r\n\tfolded"]))
        print(message.text)
        print(rig.filter.output)
        print(rig.postfix.log)
    }
}

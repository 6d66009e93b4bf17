// Automatic mail (RFC 3834): recognised, marked, limited, so that it never loops.

import InternetMessage

package enum AutomaticMail {
    /// Whether a program wrote this message by itself: a vacation note, a receipt, a calendar program's answer without a person.
    package static func isAutomatic(_ header: HeaderSection) -> Bool {
        for field in header.fields {
            let value = { field.unfoldedValue.lowercased() }
            if field.isNamed("Auto-Submitted") {
                let keyword = value().prefix { $0 != ";" && $0 != " " && $0 != "\t" && $0 != "(" }
                if keyword != "no" { return true }
            } else if field.isNamed("Precedence") {
                if ["bulk", "junk", "auto_reply"].contains(value()) { return true }
            } else if field.isNamed("X-Autoreply") || field.isNamed("X-Autorespond") || field.isNamed("X-Autoresponder") {
                if value() != "no" { return true }
            } else if field.isNamed("Content-Type") {
                let text = value()
                if text.hasPrefix("multipart/report") { return true }
            }
        }
        return false
    }

    /// The Auto-Submitted field of outgoing automatic mail: its own type, where it names one.
    package static func mark(_ header: HeaderSection) -> HeaderField {
        let keyword = header.first("Auto-Submitted").map {
            $0.unfoldedValue.lowercased().prefix { $0 != ";" && $0 != " " && $0 != "\t" && $0 != "(" }
        }
        return HeaderField("Auto-Submitted", keyword == "auto-generated" ? "auto-generated" : "auto-replied")
    }
}

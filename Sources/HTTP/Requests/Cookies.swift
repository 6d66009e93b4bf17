// Cookies of a request (RFC 6265 section 4.2).

import HTTPTypes
import Support

/// Names of cookies of this host.
package enum HostCookie {
    /// With the prefix, which is for HTTPS, a browser accepts the cookie only from this host (RFC
    /// 6265bis section 4.1.3.2).
    package static func name(_ name: String, isSecure: Bool) -> String {
        isSecure ? "__Host-\(name)" : name
    }
}

extension HTTPFields {
    /// The value of the first cookie of this name, unchanged; nil if there is none.
    package func cookie(_ name: String) -> String? {
        for field in self[values: .cookie] {
            for pair in field.utf8.split(separator: UInt8(ascii: ";")) {
                let parts = pair.split(
                    separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2, Self.trimmed(parts[0]).utf8.elementsEqual(name.utf8) else {
                    continue
                }
                return String(Self.trimmed(parts[1]))
            }
        }
        return nil
    }

    /// The names of all cookies.
    package var cookieNames: [String] {
        self[values: .cookie].flatMap { field in
            field.utf8.split(separator: UInt8(ascii: ";")).map { pair in
                String(
                    Self.trimmed(
                        pair.split(separator: UInt8(ascii: "="), maxSplits: 1).first ?? pair[...]))
            }
        }
    }

    /// Removes spaces and tabs, but no other white space. A browser treats a name after another
    /// kind of space as a different name, which the prefix `__Host-` does not protect: any site of
    /// the same domain can set it.
    private static func trimmed(_ text: Substring.UTF8View) -> Substring {
        func isSpace(_ octet: UInt8) -> Bool { octet == 0x20 || octet == 0x09 }
        var text = text.drop(while: isSpace)
        while let last = text.last, isSpace(last) { text.removeLast() }
        return Substring(text)
    }
}

// Cookies of a request (RFC 6265 section 4.2).

import Foundation
import HTTPTypes

extension HTTPFields {
    /// The value of the first cookie of this name, as it came; nil where there is none.
    package func cookie(_ name: String) -> String? {
        for field in self[values: .cookie] {
            for pair in field.split(separator: ";") {
                let parts = pair.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                guard parts.count == 2, parts[0] == name else { continue }
                return parts[1]
            }
        }
        return nil
    }
}

// The distance between a mistyped name and a known one.

/// The number of insertions, deletions, substitutions and swaps of neighbours, in octets, that turn
/// one text into the other. `Int.max` for texts of over `maximumEditedLength` octets: the work
/// grows with the product of both lengths.
package func editDistance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left.utf8), Array(right.utf8))
    guard left.count <= maximumEditedLength, right.count <= maximumEditedLength else { return .max }
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for i in 0..<left.count {
        var row = [i + 1]
        for j in 0..<right.count {
            var cost = min(row[j] + 1, last[j + 1] + 1, last[j] + (left[i] == right[j] ? 0 : 1))
            if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
                cost = min(cost, beforeLast[j - 1] + 1)
            }
            row.append(cost)
        }
        beforeLast = last
        last = row
    }
    return last[right.count]
}

/// Names of keys, signals and tests are shorter.
private let maximumEditedLength = 100

module danlu/benchmarks/load

go 1.22

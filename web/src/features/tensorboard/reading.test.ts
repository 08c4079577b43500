import { expect, it } from 'vitest'
import { filesetsOf } from './reading'

const board = (spec: object) => ({ metadata: { name: 'b' }, spec })

it('shows log folders in one spelling', () => {
  expect(filesetsOf(board({ trainingLogFilesets: ['t9k://pvc/mnist/log'] }))).toEqual(['t9k://pvc/mnist/log'])
  expect(filesetsOf(board({ logDir: { pvc: [{ name: 'mnist', subPath: ['a', 'b'] }, { name: 'all' }] } }))).toEqual(['t9k://pvc/mnist/a', 't9k://pvc/mnist/b', 't9k://pvc/all/'])
  expect(filesetsOf(board({}))).toEqual([])
})

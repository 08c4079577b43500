import { describe, expect, it } from 'vitest'
import { dataVolumes, sshCommands, useOf, withDataVolumes, withNames } from './reading'

const filled = {
  metadata: { name: 'mnist' },
  spec: { template: { spec: { containers: [{ name: 'notebook', volumeMounts: [{ mountPath: '/t9k/mnt' }] }], volumes: [{ persistentVolumeClaim: { claimName: 'mnist' } }] } } },
}

describe('a notebook from the form', () => {
  it('ties volumes and mounts by name', () => {
    const made = withNames(withDataVolumes(filled, [{ claim: 'images', mountPath: '/data' }])) as typeof filled
    expect(made.spec.template.spec.volumes).toEqual([
      { name: 'workingdir', persistentVolumeClaim: { claimName: 'mnist' } },
      { name: 'data-1', persistentVolumeClaim: { claimName: 'images' } },
    ])
    expect(made.spec.template.spec.containers[0]!.volumeMounts).toEqual([
      { name: 'workingdir', mountPath: '/t9k/mnt' },
      { name: 'data-1', mountPath: '/data' },
    ])
    expect(dataVolumes(made)).toEqual([{ claim: 'images', mountPath: '/data' }])
  })

  it('keeps names that are there', () => {
    const given = { spec: { template: { spec: { containers: [{ volumeMounts: [{ name: 'home', mountPath: '/h' }] }], volumes: [{ name: 'home', persistentVolumeClaim: { claimName: 'c' } }] } } } }
    expect(withNames(given)).toEqual(given)
  })
})

describe('a notebook from the cluster', () => {
  const notebook = {
    metadata: { name: 'mnist', namespace: 'demo' },
    status: { conditions: [{ type: 'Idle', status: 'True' as const }], ssh: { serviceName: 'managed-notebook-ssh-1', port: 2222 } },
  }
  it('knows whether somebody uses it, and how to log in', () => {
    expect(useOf(notebook)).toBe('idle')
    expect(useOf({ metadata: { name: 'x' } })).toBe('unknownUse')
    expect(sshCommands(notebook)).toEqual(['kubectl -n demo port-forward service/managed-notebook-ssh-1 2222:2222', 'ssh -p 2222 mnist@127.0.0.1'])
    expect(sshCommands({ metadata: { name: 'x' } })).toEqual([])
  })
})
